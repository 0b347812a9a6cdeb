# The DLPack header comes in the wheel of apache-tvm-ffi; nothing else of it is used.
execute_process(COMMAND ${Python_EXECUTABLE} -c
  "import importlib.util as u; print(u.find_spec('tvm_ffi').submodule_search_locations[0] + '/include')"
  OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE tvm_ffi_include COMMAND_ERROR_IS_FATAL ANY)
include(${CMAKE_CURRENT_LIST_DIR}/packages.cmake)
copy_of_package(dlpack ${tvm_ffi_include}/dlpack dlpack_copy)
get_filename_component(DLPACK_INCLUDE_DIR ${dlpack_copy} DIRECTORY)
