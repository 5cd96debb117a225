// What is used of CPython's stable ABI, looked up in the process at run time: the library is one for every version of
// Python, and for processes without one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tocsin::hook {

struct PyObject;  // theirs; nothing of it is looked into

/// Their `PyMethodDef`.
struct PyMethod {
  const char* name;
  void* function;
  int flags;
  const char* doc;
};

/// Their calling conventions, as the stable ABI fixes them.
constexpr int kPyNoArguments = 0x0004;
constexpr int kPyOneArgument = 0x0008;
constexpr int kPyArguments = 0x0080;  // an array and its length
constexpr int kPyKeywords = 0x0002;   // with it: those that have names stand behind the others

struct PythonCalls {
  PyObject* (*new_function)(PyMethod*, PyObject* self, PyObject* module) = nullptr;
  PyObject* (*new_capsule)(void*, const char*, void (*destroy)(PyObject*)) = nullptr;
  void* (*capsule_pointer)(PyObject*, const char*) = nullptr;
  PyObject* (*new_dict)() = nullptr;
  int (*dict_set)(PyObject*, const char*, PyObject*) = nullptr;
  PyObject* (*new_long)(long) = nullptr;
  PyObject* (*new_bool)(long) = nullptr;
  PyObject* (*build)(const char*, ...) = nullptr;
  unsigned long long (*as_u64)(PyObject*) = nullptr;
  long long (*as_i64)(PyObject*) = nullptr;
  double (*as_double)(PyObject*) = nullptr;
  PyObject* (*error_occurred)() = nullptr;
  void (*increase)(PyObject*) = nullptr;
  void (*decrease)(PyObject*) = nullptr;
  void (*set_error)(PyObject* type, const char*) = nullptr;
  void (*clear_error)() = nullptr;
  PyObject* (*get_attribute)(PyObject*, PyObject* name) = nullptr;
  int (*set_attribute)(PyObject*, PyObject* name, PyObject*) = nullptr;
  PyObject* (*call)(PyObject*, ...) = nullptr;  // the arguments, and a null pointer
  int (*is_true)(PyObject*) = nullptr;
  std::ptrdiff_t (*size)(PyObject*) = nullptr;
  PyObject* (*intern)(const char*) = nullptr;
  PyObject* (*call_with)(PyObject*, PyObject* tuple, PyObject* dict) = nullptr;
  PyObject* (*call_method)(PyObject*, PyObject* name, ...) = nullptr;  // as `call`
  PyObject* (*type_of)(PyObject*) = nullptr;
  PyObject* (*get_item)(PyObject*, PyObject* key) = nullptr;
  PyObject* (*list_item)(PyObject*, std::ptrdiff_t) = nullptr;  // lent; as the next three
  PyObject* (*tuple_item)(PyObject*, std::ptrdiff_t) = nullptr;
  PyObject* (*dict_find)(PyObject*, PyObject* key) = nullptr;  // null: not there, no error
  PyObject* (*weak_target)(PyObject*) = nullptr;
  int (*dict_next)(PyObject*, std::ptrdiff_t* place, PyObject** key, PyObject** value) = nullptr;
  int (*dict_put)(PyObject*, PyObject* key, PyObject* value) = nullptr;
  PyObject* (*new_tuple)(std::ptrdiff_t) = nullptr;
  int (*tuple_put)(PyObject*, std::ptrdiff_t, PyObject* taken) = nullptr;
  PyObject* none = nullptr;
  PyObject* float_type = nullptr;
  PyObject* dict_type = nullptr;
  PyObject** type_error = nullptr;
};

/// Null: this process has no CPython whose functions can be seen.
const PythonCalls* python_calls();

}  // namespace tocsin::hook
