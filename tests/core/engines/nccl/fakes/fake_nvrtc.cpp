// A compiler of kernels that compiles them for the host, into a library beside its own. What it gives is the name of
// that.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>

namespace {

constexpr int success = 0, compilation_failed = 6, no_builtins = 7;
constexpr char before[] =
    "#define __global__\n#define __device__\n"
    "struct Index { unsigned x; };\nstatic thread_local Index threadIdx, blockIdx, gridDim, blockDim;\n";
// The last blocks go first: in what order they go is not said.
constexpr char after[] = R"(
extern "C" unsigned long element_bytes() { return sizeof(Element); }
extern "C" void on_grid(unsigned blocks, unsigned threads, Element* result, Areas areas, unsigned long long count,
                        int ranks, double factor) {
  gridDim.x = blocks, blockDim.x = threads;
  for (blockIdx.x = blocks; blockIdx.x-- > 0;)
    for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x) combine(result, areas, count, ranks, factor);
}
)";

struct Program {
  std::string source, code;
};

std::string folder() {
  Dl_info info{};
  dladdr(reinterpret_cast<const void*>(&folder), &info);
  const std::string path = info.dli_fname;
  return path.substr(0, path.rfind('/') + 1);
}

}  // namespace

extern "C" {

const char* nvrtcGetErrorString(int error) {
  return error == compilation_failed ? "compilation failed" : error == no_builtins ? "no builtins" : "no error";
}

int nvrtcGetNumSupportedArchs(int* count) {
  *count = 2;
  return success;
}

int nvrtcGetSupportedArchs(int* archs) {
  archs[0] = 80;
  archs[1] = 90;
  return success;
}

int nvrtcCreateProgram(Program** program, const char* source, const char*, int, const char**, const char**) {
  *program = new Program{source, ""};
  return success;
}

int nvrtcCompileProgram(Program* program, int count, const char** options) {
  if (dlopen("fake-libnvrtc-builtins.so.12", RTLD_NOW) == nullptr) return no_builtins;
  std::string defined;
  for (int i = 0; i < count; ++i)
    if (std::strncmp(options[i], "-D", 2) == 0) defined += std::string(" ") + options[i];
  const auto name = std::hash<std::string>{}(program->source + defined);
  const std::string library = folder() + "kernel-" + std::to_string(name) + ".so";
  program->code = library;
  if (access(library.c_str(), F_OK) == 0) return success;
  const std::string mine = library + "." + std::to_string(getpid());
  std::ofstream(mine + ".cpp") << before << program->source << after;
  const std::string command =
      "c++ -std=c++20 -O1 -fwrapv -shared -fPIC" + defined + " -o " + mine + " " + mine + ".cpp";
  const int error = std::system(command.c_str());
  std::remove((mine + ".cpp").c_str());
  if (error != 0) return compilation_failed;
  return std::rename(mine.c_str(), library.c_str()) == 0 ? success : compilation_failed;
}

int nvrtcGetProgramLogSize(Program*, std::size_t* size) {
  *size = 1;
  return success;
}

int nvrtcGetProgramLog(Program*, char* log) {
  *log = 0;
  return success;
}

int nvrtcGetCUBINSize(Program* program, std::size_t* size) {
  *size = program->code.size() + 1;
  return success;
}

int nvrtcGetCUBIN(Program* program, char* code) {
  std::strcpy(code, program->code.c_str());
  return success;
}

int nvrtcGetPTXSize(Program* program, std::size_t* size) { return nvrtcGetCUBINSize(program, size); }
int nvrtcGetPTX(Program* program, char* code) { return nvrtcGetCUBIN(program, code); }

int nvrtcDestroyProgram(Program** program) {
  delete *program;
  *program = nullptr;
  return success;
}

}  // extern "C"
