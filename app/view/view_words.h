// Words that all views of the topics share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/view/topic_view.h"
#include "core/time.h"

namespace tocsin::app {

/// "12 s ago"; empty where the time is not known.
std::string ago(core::WallTime then, core::WallTime now);
/// The beginning of an id that a person types.
std::string short_run(const core::RunUid& run);
/// As much of a fingerprint or another long id as is the only one.
std::string short_id(std::string_view id);
/// Fit for a terminal; the beginning of the run's id where no job is known of it.
std::string job_of(const TopicView& view, const core::RunUid& run);
/// Is `id` the beginning of the issue's key, its fingerprint, or the id of this report of it?
bool goes_by(const std::string& key, const core::Issue& issue, const std::string& id);
/// "[error] digits: loss is NaN"; "[resolved] …" of what is over.
std::string issue_headline(const core::Issue& issue);
/// Silences that hold now.
std::vector<const routing::Silence*> in_force(const TopicView& view, core::WallTime now);

}  // namespace tocsin::app
