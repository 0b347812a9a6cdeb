#include "tests/check.hpp"

int main(int count, char** arguments) { return shim::tests::run_tests(count, arguments) == 0 ? 0 : 1; }
