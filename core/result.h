// Result<T>: a value or an Error. Its interface is a subset of std::expected<T, Error>.
#pragma once

#include <cassert>
#include <optional>
#include <utility>
#include <variant>

#include "core/error.h"

namespace tocsin::core {

template <typename T>
class [[nodiscard]] Result {
 public:
  // Implicit, as in std::expected.
  // NOLINTBEGIN(google-explicit-constructor)
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}
  // NOLINTEND(google-explicit-constructor)

  [[nodiscard]] bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  T& value() & { return assert(has_value()), *std::get_if<0>(&state_); }
  const T& value() const& { return assert(has_value()), *std::get_if<0>(&state_); }
  T&& value() && { return assert(has_value()), std::move(*std::get_if<0>(&state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  [[nodiscard]] const Error& error() const {
    return std::get<1>(state_);  // throws where value() would be right: a defect of the caller
  }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): implicit, as in std::expected
  Result(Error error) : error_(std::move(error)) {}

  [[nodiscard]] bool has_value() const noexcept { return !error_.has_value(); }
  explicit operator bool() const noexcept { return has_value(); }
  [[nodiscard]] const Error& error() const { return assert(error_.has_value()), *error_; }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;
inline Status ok() { return {}; }

}  // namespace tocsin::core
