#include "actions/stop/stop_command.h"

#include <utility>

#include "actions/stop/stop_step.h"

namespace tocsin::actions {
namespace {

void take_duration(const core::Value& map, std::string_view key, core::Duration& out) {
  const auto* text = core::as<std::string>(core::find(map, key));
  if (text == nullptr) return;
  if (const auto given = core::parse_duration(*text); given && *given > core::Duration{}) {
    out = *given;
  }
}

}  // namespace

core::Value terms_value(const StopTerms& terms) {
  return core::ValueMap{{"mode", terms.mode},
                        {"deadline", core::ValueMap{{"ack", core::to_text(terms.ack)},
                                                    {"graceful", core::to_text(terms.graceful)},
                                                    {"total", core::to_text(terms.total)}}},
                        {"grace", core::to_text(terms.grace)},
                        {"allow_force", terms.allow_force},
                        {"expires", core::to_text(terms.expires)}};
}

StopTerms terms_from(const core::Value& value) {
  StopTerms out;
  if (const std::string mode = core::text_at(value, "mode"); !mode.empty()) out.mode = mode;
  if (const core::Value* deadline = core::find(value, "deadline")) {
    take_duration(*deadline, "ack", out.ack);
    take_duration(*deadline, "graceful", out.graceful);
    take_duration(*deadline, "total", out.total);
  }
  take_duration(value, "grace", out.grace);
  take_duration(value, "expires", out.expires);
  const auto* force = core::as<bool>(core::find(value, "allow_force"));
  out.allow_force = force != nullptr && *force;
  return out;
}

core::Command stop_command(const StopTerms& terms, const core::Issue& about,
                           const std::optional<core::CurrentRun>& current, core::WallTime now) {
  core::Command out;
  out.command_id = core::command_id(about.run.uid, about.run.attempt, "stop");
  out.action = "stop";
  out.run = about.run.uid;
  out.attempt = about.run.attempt;
  out.revision = about.run.attempt;
  out.issued_at = now;
  if (current) out.launch = current->launch;
  const auto common = common_step(about, current, now);
  // No loop sees a stop before its step: what it has to do by then counts from there.
  const core::Duration wait = common ? common->wait : core::Duration{};
  out.expires_at = now + terms.expires + wait;
  core::ValueMap fence{{"platform", about.run.platform}};
  if (const auto* known = core::as<core::ValueMap>(about.run.ref)) {
    fence.insert(fence.end(), known->begin(), known->end());
  }
  core::ValueMap args{
      {"mode", terms.mode},
      {"deadline", core::ValueMap{{"ack", core::to_text(terms.ack + wait)},
                                  {"graceful", core::to_text(terms.graceful + wait)},
                                  {"total", core::to_text(terms.total + wait)}}},
      {"grace", core::to_text(terms.grace)},
      {"allow_force", terms.allow_force},
      {"fence", std::move(fence)}};
  if (common) args.emplace_back("not_before_step", common->step);
  out.args = std::move(args);
  return out;
}

}  // namespace tocsin::actions
