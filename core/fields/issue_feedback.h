// The records of verdicts and notes on issues.
#pragma once

#include <string>
#include <string_view>

#include "core/issue_feedback.h"
#include "core/record.h"
#include "core/result.h"

namespace tocsin::core {

/// `verdict/<issue key>/<event id>`
std::string verdict_key(const IssueEpisode& of);
OutRecord verdict_record(const IssueVerdict& verdict);
OutRecord note_record(const IssueNote& note);
/// Takes back what has this key.
OutRecord feedback_tombstone(const std::string& key);
/// note_…
std::string note_id(const IssueNote& note);

std::string verdict_json(const IssueVerdict& verdict);
std::string note_json(const IssueNote& note);
/// invalid_argument: it is none, names no issue, nobody or an unknown verdict, or is too long.
Result<IssueVerdict> read_issue_verdict(std::string_view json);
Result<IssueNote> read_issue_note(std::string_view json);

}  // namespace tocsin::core
