#include "app/cli/command_help.h"

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "app/cli/help_formatter.h"
#include "app/cli/help_table.h"

namespace tocsin::app {
namespace {

constexpr std::string_view kServing =
    "0   stopped by SIGINT, SIGTERM or a closed terminal\n"
    "1   the address of http.listen is in use, or a topic is missing\n"
    "2   wrong usage\n"
    "3   the configuration has errors\n"
    "4   broker or journal unreachable within --start-timeout\n"
    "75  a role did not end within 10 s; committed work is safe\n";
constexpr std::string_view kOneIssue =
    "0   success\n"
    "1   ID matches no issue or several\n"
    "2   wrong usage\n"
    "3   the configuration's transport cannot be read\n"
    "4   broker or journal unreachable\n";

constexpr std::array kHelp{
    CommandHelp{"",
                "Watch machine-learning training: judge telemetry by rules, notify people, and "
                "stop broken runs",
                "0   success\n"
                "1   failed, or the answer is no\n"
                "2   wrong usage\n"
                "3   the configuration has errors\n"
                "4   broker or journal unreachable\n"
                "75  temporary failure; try again\n"
                "A training process that acknowledged a stop exits with 77.\n",
                "tocsin init\n"
                "tocsin check\n"
                "tocsin up\n"
                "tocsin status\n"},
    CommandHelp{"init", "Write a commented configuration to start from",
                "0   written\n"
                "1   the file already exists or cannot be written\n"
                "2   wrong usage\n",
                "tocsin init\n"
                "tocsin init training/tocsin.yaml\n"},
    CommandHelp{"check", "Validate a configuration and warn about alarms that could never fire",
                "0   no errors, and with --live everybody answers\n"
                "1   with --live: a receiver does not answer, or a topic is not as wanted\n"
                "2   wrong usage\n"
                "3   errors, or with --strict warnings\n"
                "4   with --live: the broker does not answer\n",
                "tocsin check\n"
                "tocsin check --live\n"
                "tocsin check tocsin.yaml --strict\n"
                "tocsin check tocsin.yaml --output github\n"},
    CommandHelp{"config", "Show a configuration, or compare two", kChoose,
                "tocsin config diff tocsin.yaml next.yaml --live\n"},
    CommandHelp{"config diff",
                "Show what a new configuration changes, and which firing issues would move",
                "0   no section differs, and no firing issue would move\n"
                "1   some do\n"
                "2   wrong usage\n"
                "3   a configuration has errors\n"
                "4   broker or journal unreachable\n",
                "tocsin config diff tocsin.yaml next.yaml\n"
                "tocsin config diff tocsin.yaml next.yaml --live\n"
                "tocsin config diff tocsin.yaml next.yaml --live --from ./tocsin-data -o json\n"},
    CommandHelp{"topics", "Plan, create and export the Kafka topics that Tocsin needs", kChoose,
                "tocsin topics plan\n"
                "tocsin topics export --output strimzi > topics.yaml\n"},
    CommandHelp{"topics plan", "Compare the required topics with the existing ones",
                "0   every topic exists with the required settings\n"
                "1   a topic is missing, or its settings differ\n"
                "2   wrong usage\n"
                "3   the configuration's transport cannot be read\n"
                "4   broker unreachable\n",
                "tocsin topics plan\n"
                "tocsin topics plan -c tocsin.yaml --output json\n"},
    CommandHelp{"topics apply", "Create the missing topics",
                "0   every topic exists with the required settings\n"
                "1   a topic could not be created, or its settings differ\n"
                "2   wrong usage\n"
                "3   the configuration's transport cannot be read\n"
                "4   broker unreachable\n",
                "tocsin topics apply -c tocsin.yaml\n"},
    CommandHelp{"topics export", "Print the topic plan in the format of another tool",
                "0   printed\n"
                "2   wrong usage\n"
                "3   the configuration's transport cannot be read\n",
                "tocsin topics export --output strimzi > topics.yaml\n"
                "tocsin topics export --output shell | sh\n"},
    CommandHelp{"rules", "List and describe the rules", kChoose,
                "tocsin rules list\n"
                "tocsin rules describe overfit\n"},
    CommandHelp{"rules list", "List each rule with its severity and a one-sentence description",
                "0   listed\n"
                "2   wrong usage\n",
                "tocsin rules list\n"
                "tocsin rules list --output json\n"},
    CommandHelp{"rules describe",
                "Describe a rule: parameters, their meanings, and their values in both presets",
                "0   described\n"
                "1   no rule has this name\n"
                "2   wrong usage\n",
                "tocsin rules describe vanishing_gradient\n"
                "tocsin rules describe declared\n"},
    CommandHelp{"schema", "Print the JSON Schema of the configuration, for editors",
                "0   printed\n"
                "2   wrong usage\n",
                "tocsin schema > tocsin.schema.json\n"
                "tocsin schema events --markdown\n"},
    CommandHelp{"version", "Print the version",
                "0   printed\n"
                "2   wrong usage\n",
                "tocsin version\n"
                "tocsin version --output json\n"},
    CommandHelp{"up", "Run all roles in one process: collect, evaluate and route", kServing,
                "tocsin up\n"
                "tocsin up -c tocsin.yaml --web.listen-address 127.0.0.1:9761\n"},
    CommandHelp{"collect",
                "Run the node agent: measure this node, and end processes that ignore a stop",
                kServing, "tocsin collect -c tocsin.yaml\n"},
    CommandHelp{"route", "Run the router: read issues, decide whom to notify, and deliver",
                kServing, "tocsin route -c tocsin.yaml --log.format json\n"},
    CommandHelp{
        "evaluate",
        "Judge live telemetry by rules and write issues; with --from, judge a recording once",
        "0   stopped by a signal; with --from: no issues\n"
        "1   the address of http.listen is in use, or a topic is missing; with --from: issues "
        "found\n"
        "2   wrong usage, or an unknown rule or run\n"
        "3   the configuration has errors\n"
        "4   broker or journal unreachable\n"
        "75  a role did not end within 10 s; committed work is safe\n",
        "tocsin evaluate -c tocsin.yaml\n"
        "tocsin evaluate --from ./run1\n"
        "tocsin evaluate --from ./run1 --rules exploding_tensor,overfit --output json\n"},
    CommandHelp{"rule-worker",
                "Run the rules of a Python file on live runs, each rule in its own process",
                kServing,
                "tocsin rule-worker my_rules.py --out kafka://localhost:9092\n"
                "tocsin rule-worker my_rules.py --class BigGradient --set threshold=10\n"},
    CommandHelp{"status",
                "Show runs, open issues, stops and unhealthy components, for all runs or one run",
                "0   everything is healthy\n"
                "1   a component is unhealthy, or RUN matches no run or several\n"
                "2   wrong usage\n"
                "3   the configuration's transport cannot be read\n"
                "4   broker or journal unreachable\n",
                "tocsin status\n"
                "tocsin status --from ./tocsin-data\n"
                "tocsin status digits\n"
                "tocsin status --at 2h --output json\n"},
    CommandHelp{"issues", "List, show, reproduce and resolve issues", kChoose,
                "tocsin issues list --job digits\n"
                "tocsin issues show 207f21eb06\n"},
    CommandHelp{"issues list", "List open issues, worst first", kReading,
                "tocsin issues list\n"
                "tocsin issues list --job digits --all\n"
                "tocsin issues list --from kafka://localhost:9092 --output json\n"},
    CommandHelp{"issues show", "Show everything about one issue", kOneIssue,
                "tocsin issues show 207f21eb06\n"
                "tocsin issues show 207f21eb06 --output json\n"},
    CommandHelp{"issues reproduce",
                "Run the rule of an issue again, with the same parameters and the same telemetry",
                "0   the rule found the same issue again\n"
                "1   it did not, or ID matches no issue or several\n"
                "2   wrong usage, or the directory of --save is not empty\n"
                "3   the configuration has errors\n"
                "4   broker or journal unreachable\n",
                "tocsin issues reproduce 207f21eb06\n"
                "tocsin issues reproduce 207f21eb06 --save ./kept\n"},
    CommandHelp{"tail", "Follow issues, jobs, stops and their replies until Ctrl-C",
                "0   stopped by Ctrl-C\n"
                "2   wrong usage\n"
                "3   the configuration's transport cannot be read\n"
                "4   broker or journal unreachable\n",
                "tocsin tail\n"
                "tocsin tail --rule exploding_tensor --output json\n"},
    CommandHelp{"report", "Write a report about a run",
                "0   written\n"
                "1   RUN matches no run or several, or the file cannot be written\n"
                "2   wrong usage, or an unknown rule\n"
                "3   the configuration has errors\n"
                "4   broker or journal unreachable\n",
                "tocsin report digits --html digits.html\n"
                "tocsin report --from ./run1 --html run1.html\n"
                "tocsin report --from ./run1 --bundle report1\n"
                "tocsin report --from ./run1 --judge --rules default,profiler_report\n"},
    CommandHelp{"stop", "Ask a running job to stop, and show how it ends",
                "0   the run stopped or had already ended; with --wait 0s: request sent; with "
                "--dry-run: request shown\n"
                "1   RUN matches no run or several, or the stop failed\n"
                "2   wrong usage\n"
                "3   the configuration's transport cannot be read\n"
                "4   broker or journal unreachable\n"
                "75  the run did not end within --wait; the request stays in force\n",
                "tocsin stop digits --reason \"wrong learning rate\"\n"
                "tocsin stop 4e3046d4 --mode stop --force --wait 0s\n"},
    CommandHelp{"stops", "List requested stops; approve or cancel those that wait", kReading,
                "tocsin stops list\n"
                "tocsin stops approve cmd_7f3k\n"},
    CommandHelp{"stops list", "List stops that are open or wait for approval", kReading,
                "tocsin stops list\n"
                "tocsin stops list --all --output json\n"},
    CommandHelp{"stops show", "Show one stop: who asked, who approved, how far it is",
                "0   shown\n"
                "1   ID matches no stop or several\n"
                "2   wrong usage\n"
                "3   configuration invalid\n"
                "4   broker or journal unreachable",
                "tocsin stops show cmd_7f3k\n"},
    CommandHelp{"stops approve",
                "Allow a stop that waits for approval: the server asks the run to stop",
                "0   approved, and the run was asked\n"
                "1   ID matches no stop or several, or the stop does not wait\n"
                "2   wrong usage\n"
                "3   configuration invalid\n"
                "4   broker or journal unreachable\n"
                "75  approved; no server asked the run within --wait",
                "tocsin stops approve cmd_7f3k --comment \"loss is NaN\"\n"},
    CommandHelp{"stops cancel", "Withdraw a stop: one that waits, or one that was requested",
                "0   rejected or withdrawn\n"
                "1   ID matches no stop or several, or the stop is over\n"
                "2   wrong usage\n"
                "3   configuration invalid\n"
                "4   broker or journal unreachable",
                "tocsin stops cancel cmd_7f3k --comment \"the peak is expected\"\n"},
    CommandHelp{"send-test", "Send a marked message to a receiver; show requests and answers",
                "0   every message arrived; with --dry-run: every request was shown\n"
                "1   a message was refused, or no action of the receiver takes messages\n"
                "2   wrong usage, or no receiver or integration has this name\n"
                "3   the configuration has errors\n"
                "75  a far side is busy or did not answer; try again\n",
                "tocsin send-test oncall\n"
                "tocsin send-test oncall/pagerduty --drill\n"
                "tocsin send-test oncall --dry-run --output json\n"},
    CommandHelp{
        "capture", "Ask a running job to capture more data, and show its reply",
        "0   every rank accepted; with --wait 0s: request sent; with --dry-run: request shown\n"
        "1   RUN matches no run or several, or a rank refused\n"
        "2   wrong usage\n"
        "3   the configuration's transport cannot be read\n"
        "4   broker or journal unreachable\n"
        "75  not every rank replied within --wait; the request stays in force\n",
        "tocsin capture digits --collection gradients --statistic quantiles --steps 200\n"
        "tocsin capture digits --stacks\n"
        "tocsin capture digits --end\n"},
    CommandHelp{
        "replay",
        "Judge past telemetry by other rules and compare with the issues of that time; write "
        "nothing",
        "0   the same issues as at that time; with --sweep: values shown\n"
        "1   the issues differ\n"
        "2   wrong usage, or an unknown rule, run or parameter\n"
        "3   the configuration has errors\n"
        "4   broker or journal unreachable, or no telemetry in the span\n",
        "tocsin replay --rules new.yaml --since 2026-11-22T14:00:00Z --until 2026-11-22T15:00:00Z\n"
        "tocsin replay --rules vanishing_gradient --since 24h --sweep threshold=1e-9..1e-5\n"
        "tocsin replay --from ./run1 --rules new.yaml\n"},
    CommandHelp{"test",
                "Test rules against golden files: a recording must raise exactly the issues that a "
                "file expects",
                "0   every file passed; with --update: every file written\n"
                "1   a file failed\n"
                "2   wrong usage\n"
                "3   a file has errors\n"
                "4   a recording cannot be read\n",
                "tocsin test golden/*.yaml\n"
                "tocsin test golden/overfit.yaml --update\n"},
    CommandHelp{"journal", "Check a journal for damage, or salvage its readable records", kChoose,
                "tocsin journal check ./tocsin-data\n"
                "tocsin journal salvage ./tocsin-data ./rescued\n"},
    CommandHelp{"journal check", "Read a whole journal and report damage",
                "0   no damage\n"
                "1   damage found\n"
                "2   wrong usage\n"
                "4   no journal in this directory\n",
                "tocsin journal check ./tocsin-data\n"
                "tocsin journal check ./tocsin-data --output json\n"},
    CommandHelp{"journal salvage", "Copy the readable records of a damaged journal into a new one",
                "0   everything was copied\n"
                "1   some records could not be copied; the output lists them\n"
                "2   wrong usage\n"
                "4   nothing could be copied\n",
                "tocsin journal salvage ./tocsin-data ./rescued\n"},
    CommandHelp{"insights", "Check, measure or rebuild the stores behind the page", kChoose,
                "tocsin insights check\n"
                "tocsin insights stats --output json\n"
                "tocsin insights rebuild\n"},
    CommandHelp{"insights check", "Read both stores of the page in full and report damage",
                "0   no damage\n"
                "1   damage found\n"
                "2   wrong usage\n"
                "3   the configuration has errors\n"
                "4   a store is missing or cannot be opened\n",
                "tocsin insights check\n"
                "tocsin insights check ./tocsin-data --output json\n"},
    CommandHelp{"insights stats", "Show what the stores of the page hold and what it costs",
                "0   shown\n"
                "2   wrong usage\n"
                "3   the configuration has errors\n"
                "4   a store is missing or cannot be read\n",
                "tocsin insights stats\n"
                "tocsin insights stats ./tocsin-data --output json\n"},
    CommandHelp{"insights rebuild",
                "Replace the stores of the page with new ones, filled from the topics",
                "0   the new stores are in place\n"
                "1   the topics have dropped runs that the old stores have; nothing was changed\n"
                "2   wrong usage\n"
                "3   the configuration has errors\n"
                "4   a store is in use, or the topics cannot be read\n",
                "tocsin insights rebuild\n"
                "tocsin insights rebuild --drop-lost\n"},
    CommandHelp{
        "run", "Run a training command, watch it, and report how it ended",
        "n      the command's own exit code\n"
        "77     the run acknowledged a stop, and the command exited with 0 (a launcher: 1)\n"
        "128+n  signal n ended the command\n"
        "2      wrong usage\n"
        "3      the configuration has errors\n",
        "tocsin run -- python train.py\n"
        "tocsin run --out ./run1 -- torchrun --nproc-per-node 8 train.py\n"},
    CommandHelp{
        "sync",
        "Send a finished journal directory to Kafka; a repeated sync sends only new records",
        "0   every record is on Kafka\n"
        "2   wrong usage, no broker given, or another sync of the directory is running\n"
        "3   the configuration's transport cannot be read\n"
        "4   the directory cannot be read, or the broker is unreachable\n",
        "tocsin sync ./run1 --out kafka://localhost:9092\n"},
    CommandHelp{"completion", "Print the completion script for a shell",
                "0   printed\n"
                "2   wrong usage\n",
                "tocsin completion bash > ~/.local/share/bash-completion/completions/tocsin\n"
                "tocsin completion fish > ~/.config/fish/completions/tocsin.fish\n"},
};

std::string indented(std::string_view lines) {
  std::string out;
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    const std::string_view line = lines.substr(0, end);
    out += "  " + std::string(line) + "\n";
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  return out;
}

const CommandHelp& help_of(std::string_view path) {
  for (const auto table : {std::span<const CommandHelp>(kHelp), operator_help(), silence_help()}) {
    for (const CommandHelp& one : table) {
      if (one.path == path) return one;
    }
  }
  throw std::logic_error("no help for the command \"" + std::string(path) + "\"");
}

void add_help_at(CLI::App& app, const std::string& path) {
  const CommandHelp& help = help_of(path);
  app.description(std::string(help.summary));
  app.footer("Exit codes:\n" + indented(help.exits) + "\nExamples:\n" + indented(help.examples));
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_help_flag("-h,--help", "Print this help and exit");
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    add_help_at(*command, path.empty() ? command->get_name() : path + " " + command->get_name());
  }
}

}  // namespace

void add_help(CLI::App& app) { add_help_at(app, ""); }

}  // namespace tocsin::app
