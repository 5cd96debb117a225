// How the reports of one episode are put together: what was found stays as it was found, and the end
// is told beside it (docs/routing.md, Life of an issue).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/issue.h"

namespace tocsin::core {

/// Does a further firing report take the place of what was found? Only a more severe one does: the
/// first words of an episode are the ones that say what happened.
[[nodiscard]] bool outranks(const Issue& report, const Issue& found) noexcept;

/// What a resolve says of the end: its own `ending`, or, of producers that have none, its texts and
/// step. A text that only repeats what was found says nothing of the end.
[[nodiscard]] Ending ending_of(const Issue& resolve, const Issue& found);

/// The episode with the end that `resolve` reports: status, time, resolution, ending, stage times.
/// Texts, evidence, step and id stay those of the report that found it.
void end_with(Issue& found, const Issue& resolve);

/// How an episode ended, in one sentence, where its producer says no more than the resolution.
[[nodiscard]] std::string_view end_sentence(Resolution resolution) noexcept;

/// What this report says that is new: of a resolve how it ended, else what was found.
[[nodiscard]] const std::string& news_of(const Issue& report) noexcept;
/// Where it says so: of a resolve the step of the end.
[[nodiscard]] std::optional<std::int64_t> step_of_news(const Issue& report) noexcept;

/// A resolve whose firing was never seen, as an episode of its own: it keeps all it says.
void end_alone(Issue& resolve);

}  // namespace tocsin::core
