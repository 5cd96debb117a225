#include "routing/tables/kept_labels.h"

#include "routing/tables/packed_bytes.h"

namespace tocsin::routing {

KeptLabels::KeptLabels(const core::Labels& labels) {
  BytesOut out(bytes_);
  for (const auto& [name, value] : labels.entries()) {
    out.text(name);
    out.text(value);
  }
  bytes_.shrink_to_fit();
}

KeptLabels::operator core::Labels() const {
  core::Labels out;
  for (BytesIn in(bytes_); !in.at_end();) {
    const std::string_view name = in.text();
    out.set(name, in.text());
  }
  return out;
}

std::string_view KeptLabels::at(std::string_view name) const noexcept {
  for (BytesIn in(bytes_); !in.at_end();) {
    const std::string_view known = in.text();
    const std::string_view value = in.text();
    if (known == name) return value;
  }
  return {};
}

bool KeptLabels::are(const core::Labels& labels) const noexcept {
  BytesIn in(bytes_);
  for (const auto& [name, value] : labels.entries()) {
    if (in.at_end() || in.text() != name || in.text() != value) return false;
  }
  return in.at_end();
}

void pack(BytesOut& io, const KeptLabels& labels) { io.text(labels.bytes_); }
void pack(BytesIn& io, KeptLabels& labels) { labels.bytes_ = io.text(); }

}  // namespace tocsin::routing
