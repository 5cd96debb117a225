// How long what producers say may be: one table for the hook, the engine, the events and whoever reads them.
// Limits hold where data enters, by a cut that shows, so that nothing which the engine says can be refused later.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/function_ref.h"
#include "core/labels.h"

namespace tocsin::core {

namespace limit {
inline constexpr std::size_t kNameBytes = 1024;  // of a tensor, metric, series, span, worker
inline constexpr std::size_t kHostBytes = 256;   // of a node
inline constexpr std::size_t kJobBytes = 512;
inline constexpr std::size_t kRunLabels = 40;  // of a run: an issue of it has some more
inline constexpr std::size_t kLabels = 64;     // of an issue
inline constexpr std::size_t kLabelNameBytes = 256;
inline constexpr std::size_t kLabelValueBytes = 4096;
inline constexpr std::size_t kLabelsBytes = 16 * 1024;    // of one run or issue together, as JSON
inline constexpr std::size_t kReferenceBytes = 4 * 1024;  // a platform's identity of a run, as JSON
inline constexpr std::size_t kAnnotationBytes = 32 * 1024;  // of an issue together
inline constexpr std::size_t kEventBytes = 60 * 1024;       // an issue, as JSON
}  // namespace limit

/// Says how many labels stood beside those that a set of labels has.
inline constexpr std::string_view kLabelsLeftOut = "labels_left_out";

/// Makes a text fit: UTF-8 (U+FFFD for what is not), without NUL (the same), at most `most` bytes (64 and more).
/// A longer one ends in "…#" and 8 hex digits, by which two that begin alike still differ. True: it was changed.
bool bound_text(std::string& text, std::size_t most);
/// The same of a name, which has no control characters either and is never empty: "(no name)".
bool bound_name(std::string& name, std::size_t most = limit::kNameBytes);

/// Bytes of a text within JSON.
std::size_t json_bytes(std::string_view text) noexcept;

struct LabelsBound {
  std::size_t changed = 0;   // names or values
  std::size_t left_out = 0;  // whole labels
  [[nodiscard]] bool fits() const noexcept { return changed + left_out == 0; }
};
/// Makes labels fit: names and values by bound_text(), then at most `most` labels, the first by name and all
/// that are `needed` (fewer than `most`), with kLabelsLeftOut beside them; then the longest values are cut until
/// kLabelsBytes hold. Applied twice it changes nothing.
LabelsBound bound_labels(Labels& labels, std::size_t most,
                         FunctionRef<bool(std::string_view name)> needed);
/// Those of a run: kRunLabels, none needed.
LabelsBound bound_run_labels(Labels& labels);

}  // namespace tocsin::core
