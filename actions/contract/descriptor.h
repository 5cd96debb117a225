// What an action type is, and what it is given: configuration read once, then built into a
// core::Action that delivery threads share.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actions/contract/answer_target.h"
#include "actions/contract/common_config.h"
#include "config/config.h"
#include "core/action.h"
#include "core/clock.h"
#include "core/command.h"
#include "core/current_run.h"
#include "core/log.h"
#include "core/record.h"
#include "core/result.h"
#include "core/running_run.h"
#include "core/telemetry.h"

namespace tocsin::actions {

class HttpClient;
class Mailer;
class MqttConnector;
class DatagramSender;
class IssueMetrics;
class StopLedger;
class StopApprovals;
class FiringIssues;
class ProfileLedger;
class SteeringLedger;
class TrainingScalars;

/// What actions get from outside. Everything pointed to outlives every action built with it.
struct Environment {
  core::Clock* clock = nullptr;
  core::Log* log = nullptr;
  core::Telemetry* telemetry = nullptr;
  std::string cluster = "default";  // CloudEvents source "/<cluster>/router"
  std::string external_url;         // base of links in messages; empty = no links
  std::string host;                 // name of this machine: mail domain
  std::string outbox;               // where the outbox lies: brokers and prefix, or the journal
  /// Does this process deliver now? Asked by connections that are kept, from their threads. Empty:
  /// yes.
  std::function<bool()> delivers;
  /// How a command of a person names the records that are read here, as options, word by word: {"--from",
  /// "/data/tocsin-data"}. Never a credential. Empty: commands in messages name no place.
  std::vector<std::string> place;
  /// Buttons and links by which people answer where they read.
  AnswerWays answers;

  /// Writes a command record durably (stop_training); the codec and the topic are the caller's.
  std::function<core::Status(const core::Command&)> send_command;
  /// Writes one record to a topic durably (publish_metric, transport kafka: topic `metrics`).
  std::function<core::Status(const core::OutRecord&)> publish;
  /// What is going on in a run now: the newest attempt read from `issues` or `registry`, whichever
  /// is newer. nullopt: nothing was ever heard of the run. Called from delivery threads. Empty:
  /// nobody knows, which stop_training takes as nullopt.
  std::function<std::optional<core::CurrentRun>(const core::RunUid&)> current_run;
  /// The runs that go on now. Empty: nobody knows.
  std::function<std::vector<core::RunningRun>()> running_runs;
  /// No stop is sent, whatever an action is armed for (key stops.dry_run).
  bool stops_dry_run = false;
  /// The spans of messages are exported (section tracing): requests name their message's span.
  bool traced = false;
  /// Would this record be taken by its topic, which is the user's? Blocks at most 5 s. Empty: there are no
  /// such topics (the journal).
  std::function<core::Status(const core::OutRecord&)> try_record;
  /// What was asked of whom, restored from `commands` before the first attempt. null: an own one
  /// that knows nothing of the time before (a command sent by hand, tests).
  StopLedger* stops = nullptr;
  /// Stops that wait for a person's word, restored from `router-control`. null: an own one.
  StopApprovals* approvals = nullptr;
  /// Which issues fire. null: nobody knows.
  const FiringIssues* firing = nullptr;
  /// The same for profiles.
  ProfileLedger* profiles = nullptr;
  /// The same for captures and adjustments.
  SteeringLedger* steering = nullptr;
  /// State series that publish_metric keeps and the app serves at /metrics/issues.
  IssueMetrics* issue_metrics = nullptr;
  /// Newest scalars of runs, for a publish_metric that asks for some. null: nobody reads them.
  TrainingScalars* scalars = nullptr;

  /// Ports; null: the real adapter (libcurl, libmosquitto, UDP). Tests put recording fakes here.
  HttpClient* http = nullptr;
  Mailer* mailer = nullptr;
  MqttConnector* mqtt = nullptr;
  DatagramSender* datagrams = nullptr;
};

/// Who an action is built for.
struct IntegrationName {
  std::string id;
  std::string receiver;
  std::string type;
};

/// The checked configuration of one integration; immutable, may outlive the Reader it came from.
class ActionConfig {
 public:
  virtual ~ActionConfig() = default;
  /// Errors: failed_precondition (the environment lacks what the action needs), invalid_argument.
  [[nodiscard]] virtual core::Result<std::unique_ptr<core::Action>> build(
      const Environment& environment, const IntegrationName& name,
      const CommonConfig& common) const = 0;
  /// What two integrations may not both have, in words; empty: nothing.
  [[nodiscard]] virtual std::string claim() const { return {}; }
  /// What it does to runs, a line each, for `tocsin check`; empty: nothing.
  [[nodiscard]] virtual std::vector<std::string> intents() const { return {}; }
  /// Topics of the user's that it writes to.
  [[nodiscard]] virtual std::vector<std::string> topics() const { return {}; }
  /// Can its messages carry buttons, whose clicks an inbound webhook of this type hears of?
  [[nodiscard]] virtual bool takes_buttons() const { return false; }
  /// Can a test message be delivered by an action that reads issues (Traits::reads_issues)?
  [[nodiscard]] virtual bool takes_test_messages() const { return false; }
  /// What people must be told when a notification ends `expired` or `dead` without an attempt that
  /// could say so itself; mostly nothing, its record says it.
  [[nodiscard]] virtual std::vector<core::Issue> abandoned(
      const core::Notification& /*notification*/, core::DeliveryState /*state*/,
      const std::string& /*cluster*/, core::WallTime /*now*/) const {
    return {};
  }
};

/// How routing and the lanes treat this type.
struct Traits {
  bool coalesce = true;  // false: no message takes the place of another one (stop commands)
  // It acts on each issue by itself: a flush tells it all issues, in as many messages as that takes.
  // One that waits is replaced only where newer ones tell of each of its issues.
  bool every_issue = false;
  bool human = false;  // people read it: many waiting messages become one digest
  bool dedup = false;  // the far side recognises a repeated id, so an unknown outcome is retried
  // Shows what fires from memory: what still fires is shown again after a start.
  bool keeps_state = false;
  // The far side keeps an incident open until it is told otherwise: one that routing loses sight of
  // is closed there, and a resolve is not put off while the issue is suppressed.
  bool stateful = true;
  bool stops = false;  // it ends runs: a silence may hold back that alone
  // The far side takes a message "somebody has acknowledged this" (route key propagate_ack).
  bool acknowledges = false;
  // An attempt reads the issues themselves, not only the message as it was rendered.
  bool reads_issues = false;

  /// The far side has one incident per group, which a message opens and another one closes.
  [[nodiscard]] bool one_incident() const noexcept { return coalesce && !every_issue; }
};

struct ActionDescriptor {
  std::string_view name;  // the key in a receiver: webhook, email, …
  std::string_view summary;
  Traits traits;
  /// Reads the action's own keys; problems go to the Reader. Never null.
  std::shared_ptr<const ActionConfig> (*read)(config::Reader& in);
  CommonConfig defaults;  // where this type differs
};

/// The table made from the builtin_action(<name>) lines in actions/CMakeLists.txt.
std::span<const ActionDescriptor> builtin_actions();

}  // namespace tocsin::actions
