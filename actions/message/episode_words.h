// What one issue says, in words: what was found, where, when, and how it ended. Every text is
// visible on one line (core/visible_text.h). Internal to actions.
#pragma once

#include <string>
#include <string_view>

#include "core/issue.h"

namespace tocsin::actions {

/// "NaN", "17", "0.25".
std::string number(double value);
/// "2026-01-02 03:04:05 UTC".
std::string when(core::WallTime time);
/// "1m 12s", "3h 5m"; empty below a second.
std::string lasted(core::Duration duration);
/// "1.3 GB".
std::string size_text(std::uint64_t bytes);

/// The finding in a few words, as its rule has them (annotation `title`), else the beginning of its
/// summary: "loss is NaN". At most 90 bytes.
std::string title(const core::Issue& issue);
/// The same as a thing of the past: "loss was NaN".
std::string past_title(const core::Issue& issue);
/// " since step 302"; of one that is over " from step 302 to 310"; empty where steps say nothing.
std::string span_of_steps(const core::Issue& issue);
/// One word or two for the resolution: "recovered", "no longer reported". Empty while it fires.
std::string resolution_words(const core::Issue& issue);

/// Its summary, else its evidence, else its rule.
std::string first_line(const core::Issue& issue);
/// One sentence with the numbers: "non_finite is 17, limit >= 1, at step 412 (train) in
/// gradient/conv1.weight, worker_0".
std::string evidence_sentence(const core::Issue& issue);
/// "non_finite = 17; limit: >= 1; 3 times".
std::string seen(const core::Issue& issue);
/// "gradient/conv1.weight, worker_0, node-7".
std::string where(const core::Issue& issue);
/// "step 412 (train), epoch 3".
std::string step_text(const core::Issue& issue);
/// "3 of 120 tensors", "all 12 metrics"; empty where one unit alone was hit.
std::string affected(const core::Issue& issue);
/// "exploding_tensor (tensor=loss) at train step 411; …": what came before it in its run.
std::string causes(const core::Issue& issue);
/// The uid of its run; empty where it is about none.
std::string run_text(const core::RunRef& run);
/// An annotation that is none of the fields; empty: it has none of that name.
std::string_view annotation(const core::Issue& issue, std::string_view name);

}  // namespace tocsin::actions
