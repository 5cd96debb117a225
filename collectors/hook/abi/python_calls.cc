#include "collectors/hook/abi/python_calls.h"

#include <dlfcn.h>

#include <optional>

namespace tocsin::hook {
namespace {

template <typename T>
bool find(const char* name, T*& out) {
  out = reinterpret_cast<T*>(dlsym(RTLD_DEFAULT, name));
  return out != nullptr;
}

std::optional<PythonCalls> look_up() {
  PythonCalls out;
  const bool all =
      find("PyCFunction_NewEx", out.new_function) && find("PyCapsule_New", out.new_capsule) &&
      find("PyCapsule_GetPointer", out.capsule_pointer) && find("PyDict_New", out.new_dict) &&
      find("PyDict_SetItemString", out.dict_set) && find("PyLong_FromLong", out.new_long) &&
      find("PyBool_FromLong", out.new_bool) && find("Py_BuildValue", out.build) &&
      find("PyLong_AsUnsignedLongLong", out.as_u64) && find("PyLong_AsLongLong", out.as_i64) &&
      find("PyFloat_AsDouble", out.as_double) && find("PyErr_Occurred", out.error_occurred) &&
      find("Py_IncRef", out.increase) && find("Py_DecRef", out.decrease) &&
      find("PyErr_SetString", out.set_error) && find("PyErr_Clear", out.clear_error) &&
      find("PyObject_GetAttr", out.get_attribute) && find("PyObject_SetAttr", out.set_attribute) &&
      find("PyObject_CallFunctionObjArgs", out.call) && find("PyObject_IsTrue", out.is_true) &&
      find("PyObject_Size", out.size) && find("PyUnicode_InternFromString", out.intern) &&
      find("PyObject_Call", out.call_with) && find("PyObject_CallMethodObjArgs", out.call_method) &&
      find("PyObject_Type", out.type_of) && find("PyObject_GetItem", out.get_item) &&
      find("PyList_GetItem", out.list_item) && find("PyTuple_GetItem", out.tuple_item) &&
      find("PyDict_GetItem", out.dict_find) && find("PyWeakref_GetObject", out.weak_target) &&
      find("PyDict_Next", out.dict_next) && find("PyDict_SetItem", out.dict_put) &&
      find("PyTuple_New", out.new_tuple) && find("PyTuple_SetItem", out.tuple_put) &&
      find("PyFloat_Type", out.float_type) && find("PyDict_Type", out.dict_type) &&
      find("_Py_NoneStruct", out.none) && find("PyExc_TypeError", out.type_error);
  if (!all) return std::nullopt;
  return out;
}

}  // namespace

const PythonCalls* python_calls() {
  static const std::optional<PythonCalls> found = look_up();
  return found ? &*found : nullptr;
}

}  // namespace tocsin::hook
