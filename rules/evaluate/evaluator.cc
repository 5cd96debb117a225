#include "rules/evaluate/evaluator.h"

#include <algorithm>

#include "core/identity.h"

namespace tocsin::rules {

std::unique_ptr<Evaluator> Program::evaluator() const { return nullptr; }

TensorUse Program::tensor_use() const noexcept {
  return (inputs() & input::kRows) != 0 ? TensorUse::several : TensorUse::none;
}

std::uint64_t unit_number(std::initializer_list<std::string_view> parts) {
  UnitText text;
  for (const std::string_view part : parts) text.add(part).add("\x1e");
  return text.number();
}

UnitText& UnitText::add(std::string_view part) {
  if (long_.empty() && size_ + part.size() <= short_.size()) {
    std::copy(part.begin(), part.end(), short_.begin() + static_cast<std::ptrdiff_t>(size_));
    size_ += part.size();
    return *this;
  }
  if (long_.empty()) long_.assign(short_.data(), size_);
  long_ += part;
  return *this;
}

std::uint64_t UnitText::number() const {
  return core::name_hash(long_.empty() ? std::string_view(short_.data(), size_)
                                       : std::string_view(long_));
}

}  // namespace tocsin::rules
