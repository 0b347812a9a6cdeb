// What makes the library a Python module, so that Python finds it wherever it is installed. Its functions are called
// through ctypes.

#include <Python.h>

PyMODINIT_FUNC PyInit__floor() {
  static PyModuleDef definition = {};
  definition.m_base = PyModuleDef_HEAD_INIT;
  definition.m_name = "_floor";
  definition.m_doc = "The copies that collectives cannot do without; shim.bench.libraries.floor calls them.";
  definition.m_size = -1;
  return PyModule_Create(&definition);
}
