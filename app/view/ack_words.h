// Acknowledgements as the topics hold them: their records, and what they say of an open issue
// (docs/acknowledge.md).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "app/view/topic_view.h"
#include "core/record.h"
#include "routing/routing.h"

namespace tocsin::app {

/// The record of this one, and tombstones of those that are long over.
std::vector<core::OutRecord> ack_records(
    const routing::Acknowledgement& ack,
    const std::map<std::string, routing::Acknowledgement>& known, core::WallTime now);
/// Takes it back.
core::OutRecord ack_tombstone(const std::string& id);
/// ack_…
std::string ack_id(const routing::Acknowledgement& ack);

/// Who has taken the open issue on, the newest word of it; nullptr: nobody, or that is over. `key`: of
/// the issue.
const routing::Acknowledgement* acknowledged(const TopicView& view, const std::string& key,
                                             const TopicView::SeenIssue& seen, core::WallTime now);
/// Ids of all that name this issue, or its run, and are not over.
std::vector<std::string> acks_of(const TopicView& view, const std::string& key,
                                 const TopicView::SeenIssue& seen, core::WallTime now);
/// "ada@node-7, 3 min ago: looking at it"
std::string ack_text(const routing::Acknowledgement& ack, core::WallTime now);

}  // namespace tocsin::app
