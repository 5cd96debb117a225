#include "collectors/hook/abi/python_calls.h"

#include <dlfcn.h>

#include <optional>

namespace tocsin::hook {
namespace {

/// Functions and objects of the interpreter that this process has loaded.
struct Interpreter {
  bool complete = true;  // all that were asked for are there

  template <typename T>
  void find(const char* name, T*& out) {
    out = reinterpret_cast<T*>(dlsym(RTLD_DEFAULT, name));
    complete = complete && out != nullptr;
  }
};

std::optional<PythonCalls> look_up() {
  PythonCalls out;
  Interpreter in;
  in.find("PyCFunction_NewEx", out.new_function);
  in.find("PyCapsule_New", out.new_capsule);
  in.find("PyCapsule_GetPointer", out.capsule_pointer);
  in.find("PyDict_New", out.new_dict);
  in.find("PyDict_SetItemString", out.dict_set);
  in.find("PyLong_FromLong", out.new_long);
  in.find("PyBool_FromLong", out.new_bool);
  in.find("Py_BuildValue", out.build);
  in.find("PyLong_AsUnsignedLongLong", out.as_u64);
  in.find("PyLong_AsLongLong", out.as_i64);
  in.find("PyFloat_AsDouble", out.as_double);
  in.find("PyErr_Occurred", out.error_occurred);
  in.find("Py_IncRef", out.increase);
  in.find("Py_DecRef", out.decrease);
  in.find("PyErr_SetString", out.set_error);
  in.find("PyErr_Clear", out.clear_error);
  in.find("PyObject_GetAttr", out.get_attribute);
  in.find("PyObject_SetAttr", out.set_attribute);
  in.find("PyObject_CallFunctionObjArgs", out.call);
  in.find("PyObject_IsTrue", out.is_true);
  in.find("PyObject_Size", out.size);
  in.find("PyUnicode_InternFromString", out.intern);
  in.find("PyObject_Call", out.call_with);
  in.find("PyObject_CallMethodObjArgs", out.call_method);
  in.find("PyObject_Type", out.type_of);
  in.find("PyObject_GetItem", out.get_item);
  in.find("PyList_GetItem", out.list_item);
  in.find("PyTuple_GetItem", out.tuple_item);
  in.find("PyDict_GetItem", out.dict_find);
  in.find("PyWeakref_GetObject", out.weak_target);
  in.find("PyDict_Next", out.dict_next);
  in.find("PyDict_SetItem", out.dict_put);
  in.find("PyTuple_New", out.new_tuple);
  in.find("PyTuple_SetItem", out.tuple_put);
  in.find("PyFloat_Type", out.float_type);
  in.find("PyDict_Type", out.dict_type);
  in.find("_Py_NoneStruct", out.none);
  in.find("PyExc_TypeError", out.type_error);
  if (!in.complete) return std::nullopt;
  return out;
}

}  // namespace

const PythonCalls* python_calls() {
  static const std::optional<PythonCalls> found = look_up();
  return found ? &*found : nullptr;
}

}  // namespace tocsin::hook
