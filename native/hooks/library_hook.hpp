// Replaces functions that a loaded shared library imports by others, for that library alone.
#pragma once

#include <string>
#include <vector>

namespace shim {

struct Replacement {
  const char* name;  // of the imported function
  void* function;
};

// Redirects, in every loaded library with the file name `library`, all calls of the functions named. They are replaced
// in the order given, and stay replaced. Returns false, having changed nothing, when no such library is loaded or one
// that is does not import them all; also when the kernel forbids one, after which those before it are replaced.
bool replace_imports(const std::string& library, const std::vector<Replacement>& replacements);

}  // namespace shim
