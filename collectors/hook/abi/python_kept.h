// References to objects of Python that functions of the library keep between their calls.
#pragma once

#include <utility>

#include "collectors/hook/abi/python_lane.h"

namespace tocsin::hook {

/// A reference that is kept; made and given back while the interpreter is held.
class Kept {
 public:
  Kept() = default;
  explicit Kept(PyObject* object) : object_(object) {
    if (object_ != nullptr) python().increase(object_);
  }
  Kept(Kept&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Kept& operator=(Kept&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;
  ~Kept() {
    if (object_ != nullptr) python().decrease(object_);
  }
  /// Of a result, whose reference is taken. Null: what was raised is forgotten.
  static Kept of_result(PyObject* result) {
    Kept out;
    out.object_ = result;
    if (result == nullptr) python().clear_error();
    return out;
  }
  static Kept text(const char* word) { return of_result(python().intern(word)); }
  [[nodiscard]] PyObject* get() const noexcept { return object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

inline Kept attribute(PyObject* of, const Kept& name) {
  return Kept::of_result(python().get_attribute(of, name.get()));
}

inline bool true_of(const Kept& value) { return value && python().is_true(value.get()) == 1; }

inline void call(const Kept& function, PyObject* with = nullptr) {
  (void)Kept::of_result(python().call(function.get(), with, nullptr));
}

}  // namespace tocsin::hook
