// The enumerations that stand in messages, as the words that to_string() gives them.
#pragma once

#include "core/codes.h"
#include "core/fields/archive.h"
#include "core/issue.h"
#include "core/notification.h"

namespace tocsin::core {

template <>
struct Words<Severity> {
  static constexpr Severity kAll[] = {Severity::info, Severity::warning, Severity::error,
                                      Severity::critical};
};
template <>
struct Words<Mode> {
  static constexpr Mode kAll[] = {Mode::global, Mode::train, Mode::eval, Mode::predict};
};
template <>
struct Words<Dtype> {
  static constexpr Dtype kAll[] = {Dtype::unknown, Dtype::f32,     Dtype::f64,     Dtype::f16,
                                   Dtype::bf16,    Dtype::f8_e4m3, Dtype::f8_e5m2, Dtype::i8,
                                   Dtype::i16,     Dtype::i32,     Dtype::i64,     Dtype::u8,
                                   Dtype::u16,     Dtype::u32,     Dtype::u64,     Dtype::boolean,
                                   Dtype::c64,     Dtype::c128,    Dtype::text};
};
template <>
struct Words<Role> {
  static constexpr Role kAll[] = {Role::other,          Role::weight,         Role::bias,
                                  Role::gradient,       Role::loss,           Role::metric,
                                  Role::input,          Role::output,         Role::activation_in,
                                  Role::activation_out, Role::optimizer,      Role::label,
                                  Role::prediction,     Role::importance,     Role::shap,
                                  Role::tree,           Role::hyperparameter, Role::ledger};
};
template <>
struct Words<IssueStatus> {
  static constexpr IssueStatus kAll[] = {IssueStatus::firing, IssueStatus::resolved};
};
template <>
struct Words<Resolution> {
  static constexpr Resolution kAll[] = {
      Resolution::recovered, Resolution::job_ended,    Resolution::superseded,  Resolution::expired,
      Resolution::manual,    Resolution::rule_removed, Resolution::rule_changed};
};
template <>
struct Words<JobPhase> {
  static constexpr JobPhase kAll[] = {JobPhase::started, JobPhase::heartbeat, JobPhase::ended};
};
template <>
struct Words<RuleState> {
  static constexpr RuleState kAll[] = {RuleState::no_data,      RuleState::in_progress,
                                       RuleState::issues_found, RuleState::no_issues_found,
                                       RuleState::error,        RuleState::stopped};
};
template <>
struct Words<NotificationKind> {
  static constexpr NotificationKind kAll[] = {NotificationKind::open, NotificationKind::update,
                                              NotificationKind::close, NotificationKind::repeat};
};
template <>
struct Words<DeliveryState> {
  static constexpr DeliveryState kAll[] = {DeliveryState::pending,
                                           DeliveryState::delivered,
                                           DeliveryState::delivered_via_digest,
                                           DeliveryState::sent_unconfirmed,
                                           DeliveryState::superseded,
                                           DeliveryState::expired,
                                           DeliveryState::dead,
                                           DeliveryState::cancelled};
};
template <>
struct Words<OutcomeClass> {
  static constexpr OutcomeClass kAll[] = {OutcomeClass::delivered, OutcomeClass::transient,
                                          OutcomeClass::throttled, OutcomeClass::configuration,
                                          OutcomeClass::gone,      OutcomeClass::bad_payload,
                                          OutcomeClass::unknown};
};

}  // namespace tocsin::core
