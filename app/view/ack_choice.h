// What a person means to acknowledge, among what is open.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "app/view/told_groups.h"
#include "app/view/topic_view.h"
#include "core/function_ref.h"
#include "core/result.h"
#include "routing/routing.h"

namespace tocsin::app {

/// What is acknowledged, and which open issues that is; borrowed from the view.
struct AckChoice {
  routing::Acknowledgement names;                                         // only what it names
  std::vector<std::pair<std::string, const TopicView::SeenIssue*>> open;  // key, issue
};

/// Asked only where `what` may name a message or a group.
using AskToldGroups = core::FunctionRef<core::Result<const ToldGroups*>()>;

/// `what`: id of an issue or its beginning, a run, ntf_… or 8 digits or more of a group's hash. `job`:
/// `what` is a run of it. Errors: not_found, failed_precondition (several).
core::Result<AckChoice> choose_acknowledged(const TopicView& view, const std::string& what,
                                            const std::string& job, AskToldGroups told);
/// All open issues that messages of this group have told, of the whole hash.
AckChoice choose_group(const TopicView& view, const ToldGroups& told, const std::string& group);

}  // namespace tocsin::app
