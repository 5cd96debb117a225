// Labels in one piece of memory: a third of what core::Labels take.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "core/labels.h"

namespace tocsin::routing {

class BytesIn;
class BytesOut;

/// Stands for core::Labels, which it becomes where one is asked for; that makes texts anew.
class KeptLabels {
 public:
  KeptLabels() = default;
  // Implicit on purpose: either is written where the other would be.
  // NOLINTBEGIN(google-explicit-constructor)
  KeptLabels(const core::Labels& labels);
  KeptLabels(std::initializer_list<core::Labels::Entry> entries)
      : KeptLabels(core::Labels(entries)) {}
  operator core::Labels() const;
  // NOLINTEND(google-explicit-constructor)

  /// Empty when the label is absent. Borrowed until they change.
  [[nodiscard]] std::string_view at(std::string_view name) const noexcept;
  [[nodiscard]] std::string get(std::string_view name) const { return std::string(at(name)); }
  [[nodiscard]] bool are(const core::Labels& labels) const noexcept;

  friend void pack(BytesOut& io, const KeptLabels& labels);
  friend void pack(BytesIn& io, KeptLabels& labels);

 private:
  std::string bytes_;  // name, value, name, …
};

}  // namespace tocsin::routing
