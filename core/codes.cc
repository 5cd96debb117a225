#include "core/codes.h"

#include <array>
#include <utility>

namespace tocsin::core {
namespace {

template <typename E, std::size_t N>
using Names = std::array<std::pair<E, std::string_view>, N>;

constexpr Names<Mode, 4> kModes{{{Mode::global, "global"},
                                 {Mode::train, "train"},
                                 {Mode::eval, "eval"},
                                 {Mode::predict, "predict"}}};

constexpr Names<Dtype, 19> kDtypes{{
    {Dtype::unknown, "unknown"}, {Dtype::f32, "f32"},   {Dtype::f64, "f64"},
    {Dtype::f16, "f16"},         {Dtype::bf16, "bf16"}, {Dtype::f8_e4m3, "f8_e4m3"},
    {Dtype::f8_e5m2, "f8_e5m2"}, {Dtype::i8, "i8"},     {Dtype::i16, "i16"},
    {Dtype::i32, "i32"},         {Dtype::i64, "i64"},   {Dtype::u8, "u8"},
    {Dtype::u16, "u16"},         {Dtype::u32, "u32"},   {Dtype::u64, "u64"},
    {Dtype::boolean, "bool"},    {Dtype::c64, "c64"},   {Dtype::c128, "c128"},
    {Dtype::text, "text"},
}};

constexpr Names<Role, 18> kRoles{{
    {Role::other, "other"},
    {Role::weight, "weight"},
    {Role::bias, "bias"},
    {Role::gradient, "gradient"},
    {Role::loss, "loss"},
    {Role::metric, "metric"},
    {Role::input, "input"},
    {Role::output, "output"},
    {Role::activation_in, "activation_in"},
    {Role::activation_out, "activation_out"},
    {Role::optimizer, "optimizer"},
    {Role::label, "label"},
    {Role::prediction, "prediction"},
    {Role::importance, "importance"},
    {Role::shap, "shap"},
    {Role::tree, "tree"},
    {Role::hyperparameter, "hyperparameter"},
    {Role::ledger, "ledger"},
}};

constexpr Names<Severity, 4> kSeverities{{{Severity::info, "info"},
                                          {Severity::warning, "warning"},
                                          {Severity::error, "error"},
                                          {Severity::critical, "critical"}}};

template <typename E, std::size_t N>
std::string_view name_in(const Names<E, N>& names, E value) noexcept {
  for (const auto& [known, name] : names) {
    if (known == value) return name;
  }
  return "unknown";
}

template <typename E, std::size_t N>
std::optional<E> value_in(const Names<E, N>& names, std::string_view wanted) noexcept {
  for (const auto& [known, name] : names) {
    if (name == wanted) return known;
  }
  return std::nullopt;
}

}  // namespace

std::string_view to_string(Mode mode) noexcept { return name_in(kModes, mode); }
std::string_view to_string(Dtype dtype) noexcept { return name_in(kDtypes, dtype); }
std::string_view to_string(Role role) noexcept { return name_in(kRoles, role); }
std::string_view to_string(Severity severity) noexcept { return name_in(kSeverities, severity); }
std::optional<Mode> mode_from(std::string_view name) noexcept { return value_in(kModes, name); }
std::optional<Dtype> dtype_from(std::string_view name) noexcept { return value_in(kDtypes, name); }
std::optional<Role> role_from(std::string_view name) noexcept { return value_in(kRoles, name); }
std::optional<Severity> severity_from(std::string_view name) noexcept {
  return value_in(kSeverities, name);
}

Role scalar_role(std::string_view name) noexcept {
  constexpr std::string_view kLoss = "loss";
  if (!name.ends_with(kLoss)) return Role::metric;
  if (name.size() == kLoss.size()) return Role::loss;
  const char before = name[name.size() - kLoss.size() - 1];
  return before == '_' || before == '/' || before == '.' ? Role::loss : Role::metric;
}

std::size_t size_of(Dtype dtype) noexcept {
  switch (dtype) {
    case Dtype::unknown:
    case Dtype::text:
      return 0;
    case Dtype::f8_e4m3:
    case Dtype::f8_e5m2:
    case Dtype::i8:
    case Dtype::u8:
    case Dtype::boolean:
      return 1;
    case Dtype::f16:
    case Dtype::bf16:
    case Dtype::i16:
    case Dtype::u16:
      return 2;
    case Dtype::f32:
    case Dtype::i32:
    case Dtype::u32:
      return 4;
    case Dtype::f64:
    case Dtype::i64:
    case Dtype::u64:
    case Dtype::c64:
      return 8;
    case Dtype::c128:
      return 16;
  }
  return 0;
}

bool is_floating(Dtype dtype) noexcept {
  const auto code = static_cast<std::uint8_t>(dtype);
  return code >= static_cast<std::uint8_t>(Dtype::f32) &&
         code <= static_cast<std::uint8_t>(Dtype::f8_e5m2);
}

}  // namespace tocsin::core
