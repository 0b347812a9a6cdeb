// The engine's failures as the exceptions of shim/errors.py.
#pragma once

namespace shim::bindings {

// To be called once, when the module is made.
void translate_failures();

}  // namespace shim::bindings
