// What lets an alarm stay silent although every value of the configuration is valid: names that
// nothing produces, rules nobody is told of, stops that only pretend. And where a key belongs that
// stands in the wrong place.
#pragma once

#include "app/config/app_config.h"
#include "config/config.h"

namespace tocsin::app {

/// Warnings for what is most likely not meant, notes for names that only a job or another producer
/// can make true. Reports at the place of what it speaks of; call after everything was read.
void check_alarms(const config::Reader& root, const AppConfig& config);

/// Its item, such as "rules[2]", by its name: items that could not be read are not among the
/// settings. "rules" for a rule that comes from a group.
std::string path_of_rule(const config::Reader& root, const rules::RuleSettings& rule);

/// Names in matchers, `group_by`, `capture.collections` and rules' `collection_names`; metrics of a
/// node that a rule judges and no collector of this file gathers.
void check_names(const config::Reader& root, const AppConfig& config);

/// How long rules that count samples of a node wait at the pace of this file's `collect`; a warning
/// where seconds are given that this pace makes others.
void check_sample_windows(const config::Reader& root, const AppConfig& config);

/// Says of each unknown key that is known elsewhere where that is.
void explain_misplaced(const config::Document& document, config::Diagnostics& diagnostics);

}  // namespace tocsin::app
