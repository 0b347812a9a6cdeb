// A test is a function that registers itself; a failed check ends it with the place and the values.
#pragma once

#include <functional>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace shim::tests {

struct Test {
  const char* name;
  std::function<void()> body;
};

inline std::vector<Test>& all_tests() {
  static std::vector<Test> tests;
  return tests;
}

struct Registration {
  Registration(const char* name, std::function<void()> body) { all_tests().push_back({name, std::move(body)}); }
};

template <class A, class B>
void check_equal(const A& seen, const B& expected, const char* what, const char* file, int line) {
  if (seen == expected) return;
  std::ostringstream text;
  text << file << ":" << line << ": " << what << ": " << seen << " where " << expected << " was expected";
  throw std::runtime_error(text.str());
}

// Runs the tests whose names contain the program's argument, or all. Returns how many failed.
inline int run_tests(int count, char** arguments) {
  int failed = 0;
  int passed = 0;
  for (const Test& test : all_tests()) {
    if (count > 1 && std::string(test.name).find(arguments[1]) == std::string::npos) continue;
    try {
      test.body();
      ++passed;
    } catch (const std::exception& error) {
      ++failed;
      std::cerr << test.name << " failed: " << error.what() << "\n";
    }
  }
  std::cout << passed << " passed, " << failed << " failed\n";
  return passed + failed == 0 ? 1 : failed;
}

}  // namespace shim::tests

#define SHIM_TEST(name)                                                    \
  static void name();                                                      \
  static const shim::tests::Registration name##_registration(#name, name); \
  static void name()

#define CHECK_EQUAL(seen, expected) shim::tests::check_equal(seen, expected, #seen, __FILE__, __LINE__)
#define CHECK(condition) shim::tests::check_equal(static_cast<bool>(condition), true, #condition, __FILE__, __LINE__)
