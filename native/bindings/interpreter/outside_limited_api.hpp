// Functions that every CPython has, but that its limited API leaves out. They are null where a later Python has them no
// longer.
#pragma once

#include <Python.h>

extern "C" {
[[gnu::weak]] int PyGILState_Check();
[[gnu::weak]] PyThreadState* PyInterpreterState_ThreadHead(PyInterpreterState* interpreter);
[[gnu::weak]] PyThreadState* PyThreadState_Next(PyThreadState* state);
[[gnu::weak]] int PySys_AddAuditHook(int (*hook)(const char* event, PyObject* arguments, void* data), void* data);
}
