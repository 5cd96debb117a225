#include "app/cli/agent_command.h"

#include <unistd.h>

#include <iostream>
#include <map>
#include <memory>
#include <utility>

#include "app/cli/looking.h"
#include "app/process/exit_code.h"
#include "app/process/person.h"
#include "app/view/agent_order.h"
#include "app/view/audit_record.h"
#include "app/view/topic_view.h"
#include "core/json.h"
#include "core/system_clock.h"
#include "core/text_table.h"
#include "core/topics.h"
#include "core/visible_text.h"
#include "ingest/ingest.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;

constexpr auto kAgentPatience = 60s;
constexpr auto kAgentWritten = 10s;

// What is asked of agents, and their newest answers.
class AgentsAsked {
 public:
  void apply(const core::RecordView& record) {
    if (record.topic == core::topic::kAcks && !record.tombstone) {
      auto ack = ingest::decode_ack(record);
      if (ack && ack->run.nil() && ack->action == "agent")
        answers[ack->command_id] = std::move(*ack);
    }
    if (record.topic != core::topic::kCommands) return;
    const std::string node = node_of_key(record.key.value_or(""));
    if (node.empty()) return;
    auto decoded = ingest::decode_command(record);
    if (!decoded) return;
    asked.erase(node);
    if (decoded->command) asked[node] = std::move(*decoded->command);
  }
  [[nodiscard]] const core::Ack* answer_to(const core::Command& command) const {
    const auto found = answers.find(command.command_id);
    const bool meant = found != answers.end() && found->second.revision == command.revision;
    return meant ? &found->second : nullptr;
  }

  std::map<std::string, core::Command> asked;  // by node
  std::map<std::string, core::Ack> answers;    // by command
};

core::Value agent_answer_value(const core::Ack* ack) {
  if (ack == nullptr) return {};
  return core::ValueMap{
      {"phase", ack->phase}, {"at", core::to_rfc3339(ack->time)}, {"detail", ack->reason}};
}

core::Value agent_row_value(const std::string& node, const core::Command* command,
                            const core::Ack* ack) {
  return core::ValueMap{{"node", node},
                        {"asked", command == nullptr ? core::Value() : asked_of_agent(*command)},
                        {"answer", agent_answer_value(ack)}};
}

std::string settings_words(const core::Command& command) {
  const auto settings = collectors::read_agent_settings(command.args);
  if (!settings) return "cannot be read: " + settings.error().message;
  std::string out;
  if (settings->collectors) {
    for (const std::string& name : *settings->collectors) out += (out.empty() ? "" : ",") + name;
  }
  if (settings->interval)
    out += (out.empty() ? "every " : " every ") + core::to_text(*settings->interval);
  if (command.expires_at) out += ", until " + core::to_rfc3339(*command.expires_at);
  return out;
}

class AgentTalk {
 public:
  explicit AgentTalk(const AgentOptions& options) : options_(options) {}

  // kOk: everything that was written before is read.
  int open() {
    if (auto opened = looking_.open(options_.config_file, options_.out); !opened)
      return refuse(opened.error());
    auto source = view_source(looking_.transport());
    if (!source) return refuse(source.error());
    source_ = std::move(*source);
    const auto apply = [this](const core::RecordView& record) { known_.apply(record); };
    if (auto read = read_to_end(*source_, apply, kAgentPatience); !read)
      return refuse(read.error());
    return kOk;
  }

  [[nodiscard]] const AgentsAsked& known() const { return known_; }
  [[nodiscard]] const core::Command* standing() const {
    const auto found = known_.asked.find(options_.node);
    return found == known_.asked.end() ? nullptr : &found->second;
  }

  core::Status write(const std::optional<core::Command>& wished, const std::string& author) {
    core::OutRecord record =
        wished ? agent_record(*wished, options_.node, "/" + looking_.cluster() + "/cli")
               : agent_tombstone(options_.node);
    AuditEntry entry;
    entry.at = clock_.now();
    entry.who = author;
    entry.by = "command";
    const std::string person = this_person();
    entry.source = person.substr(person.find('@') + 1);
    entry.what = wished ? "agent.set" : "agent.reset";
    entry.subject = record.key;
    if (const core::Command* before = standing()) entry.before = asked_of_agent(*before);
    if (wished) entry.after = asked_of_agent(*wished);
    ingest::PublisherOptions publishing;
    publishing.writer = "agent-" + std::to_string(getpid());
    publishing.durable = true;
    auto publisher = looking_.transport().publisher(publishing);
    if (!publisher) return publisher.error();
    for (const core::OutRecord& one : {audit_record(entry), std::move(record)}) {
      if (auto sent = (*publisher)->publish(one); !sent) return sent;
    }
    return (*publisher)->flush(kAgentWritten);
  }

  // nullptr: none has come within the time.
  const core::Ack* wait_for_answer(const core::Command& command) {
    follow_until_signalled();
    const core::Duration until = clock_.monotonic() + options_.wait;
    const core::Ack* found = nullptr;
    while (goes_on() && (found = known_.answer_to(command)) == nullptr &&
           clock_.monotonic() < until) {
      const auto apply = [this](const core::RecordView& record) { known_.apply(record); };
      const auto read = source_->poll(200ms, 256, apply);
      if (!read && !read.error().retryable() && read.error().code != core::Code::data_loss) break;
    }
    return found;
  }

 private:
  const AgentOptions& options_;
  core::SystemClock clock_;
  Looking looking_;
  std::unique_ptr<core::RecordSource> source_;
  AgentsAsked known_;
};

int tell_answer(const AgentOptions& options, const core::Command& command, const core::Ack* ack) {
  const bool refused = ack != nullptr && ack->phase == "refused";
  const bool open = ack == nullptr && options.wait > core::Duration::zero();
  if (options.json) {
    std::cout << core::to_json(agent_row_value(options.node, &command, ack)) << "\n";
  } else if (ack != nullptr) {
    (refused ? std::cerr << "tocsin: " : std::cout)
        << options.node << " " << core::visible(ack->phase) << ": " << core::visible(ack->reason)
        << "\n";
  } else {
    std::cout << options.node << ": asked to sample " << settings_words(command) << "\n";
    if (open)
      std::cout << "no answer within " << core::to_text(options.wait)
                << "; it holds as soon as an agent of this name reads it\n";
  }
  return refused ? kFailed : open ? kTemporary : kOk;
}

}  // namespace

int agent_show(const AgentOptions& options) {
  AgentTalk talk(options);
  if (const int failed = talk.open(); failed != kOk) return failed;
  std::map<std::string, const core::Command*> shown;
  for (const auto& [node, command] : talk.known().asked) {
    if (options.node.empty() || options.node == node) shown.emplace(node, &command);
  }
  if (options.json) {
    core::ValueList items;
    for (const auto& [node, command] : shown)
      items.push_back(agent_row_value(node, command, talk.known().answer_to(*command)));
    std::cout << core::to_json(core::ValueMap{{"items", std::move(items)}}) << "\n";
    return kOk;
  }
  if (shown.empty()) {
    std::cout << (options.node.empty() ? "nothing is asked of any node's agent"
                                       : "nothing is asked of the agent on " + options.node)
              << "; each samples as its own file says\n";
    return kOk;
  }
  std::vector<core::TableRow> rows{{"NODE", "ASKED", "BY", "AT", "ANSWER"}};
  for (const auto& [node, command] : shown) {
    const core::Ack* ack = talk.known().answer_to(*command);
    rows.push_back({core::visible(node), core::visible(settings_words(*command)),
                    core::visible(command->requested_by), core::to_rfc3339(command->issued_at),
                    ack == nullptr ? "none yet" : core::visible(ack->phase + ": " + ack->reason)});
  }
  std::cout << core::text_table(rows);
  return kOk;
}

int agent_set(const AgentOptions& options) {
  core::ValueMap args;
  if (options.interval) args.emplace_back("interval", core::to_text(*options.interval));
  if (!options.collectors.empty())
    args.emplace_back("collectors",
                      core::ValueList(options.collectors.begin(), options.collectors.end()));
  auto settings = collectors::read_agent_settings(core::Value(std::move(args)));
  core::Status good = check_node_name(options.node);
  if (good && !settings) good = settings.error();
  if (good && settings->empty())
    good = core::invalid_argument(
        "expected --interval or --collectors; tocsin agent reset takes back");
  if (!good) {
    std::cerr << "tocsin: " << good.error().message << "\n";
    return kUsage;
  }
  AgentTalk talk(options);
  if (const int failed = talk.open(); failed != kOk) return failed;
  const AgentOrder order{std::move(*settings), options.lasts};
  const std::string author = options.author.empty() ? this_person() : options.author;
  const core::Command* before = talk.standing();
  const core::Command command =
      before != nullptr && order.says(*before)
          ? *before
          : agent_command(order, options.node, author, before == nullptr ? 1 : before->revision + 1,
                          core::SystemClock().now());
  if (options.dry_run) {
    if (options.json) {
      std::cout << core::to_json(agent_row_value(options.node, &command, nullptr)) << "\n";
    } else {
      std::cout << options.node << ": would be asked to sample " << settings_words(command) << "\n";
    }
    return kOk;
  }
  if (before == nullptr || before->command_id != command.command_id) {
    if (const auto done = talk.write(command, author); !done) return refuse(done.error());
  }
  return tell_answer(options, command, talk.wait_for_answer(command));
}

int agent_reset(const AgentOptions& options) {
  AgentTalk talk(options);
  if (const int failed = talk.open(); failed != kOk) return failed;
  if (talk.standing() == nullptr) {
    std::cerr << "tocsin: nothing is asked of the agent on " << core::visible(options.node) << "\n";
    return kFailed;
  }
  if (!options.dry_run) {
    const std::string author = options.author.empty() ? this_person() : options.author;
    if (const auto done = talk.write(std::nullopt, author); !done) return refuse(done.error());
  }
  if (options.json) {
    std::cout << core::to_json(agent_row_value(options.node, nullptr, nullptr)) << "\n";
  } else {
    std::cout << options.node << (options.dry_run ? ": would sample" : ": samples")
              << " as its own file says\n";
  }
  return kOk;
}

}  // namespace tocsin::app
