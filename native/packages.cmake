# pip builds in an environment that is another folder each time. What is compiled of a package there is copied to one place, so that
# an installation compiles what has changed and no more.
function(copy_of_package name folder variable)
  set(copy ${CMAKE_BINARY_DIR}/packages/${name})
  file(GLOB_RECURSE files RELATIVE ${folder} ${folder}/*)
  list(FILTER files EXCLUDE REGEX __pycache__)
  file(GLOB_RECURSE copied RELATIVE ${copy} ${copy}/*)
  list(REMOVE_ITEM copied ${files})
  foreach(file ${copied}) # which another version had
    file(REMOVE ${copy}/${file})
  endforeach()
  foreach(file ${files})
    get_filename_component(inside ${copy}/${file} DIRECTORY)
    file(MAKE_DIRECTORY ${inside})
    file(COPY_FILE ${folder}/${file} ${copy}/${file} ONLY_IF_DIFFERENT)
  endforeach()
  set(${variable} ${copy} PARENT_SCOPE)
endfunction()
