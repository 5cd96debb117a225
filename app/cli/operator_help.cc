#include <array>

#include "app/cli/help_table.h"

namespace tocsin::app {
namespace {

constexpr std::string_view kLetters =
    "0   done; with --dry-run: shown\n"
    "1   ID matches no dead letter or several, or a dead letter was refused\n"
    "2   wrong usage\n"
    "3   the configuration's transport cannot be read\n"
    "4   broker or journal unreachable\n";
constexpr std::string_view kOrder =
    "0   ordered; a running router obeys at once, and each later one\n"
    "2   wrong usage, or no integration has this ID\n"
    "3   the configuration has errors\n"
    "4   broker or journal unreachable\n";
constexpr std::string_view kRouteTest =
    "0   shown; with --expect or --file: as expected\n"
    "1   other receivers than expected, or ID matches no issue or several\n"
    "2   wrong usage\n"
    "3   the configuration or the file has errors\n"
    "4   broker or journal unreachable\n";

constexpr std::array kOperatorHelp{
    CommandHelp{"history", "Show every notification: when, to whom, each attempt, and how it ended",
                "0   success; with --audit: every notification has one state\n"
                "1   with --audit: a notification has none or several; RUN matches no run or "
                "several\n"
                "2   wrong usage\n"
                "3   the configuration's transport cannot be read\n"
                "4   broker or journal unreachable\n",
                "tocsin history --run digits\n"
                "tocsin history --integration oncall/slack --state dead --since 24h\n"
                "tocsin history --audit --output json\n"},
    CommandHelp{"dlq", "List, show, replay and discard dead letters", kChoose,
                "tocsin dlq list\n"
                "tocsin dlq replay --integration oncall/slack\n"},
    CommandHelp{"dlq list",
                "List notifications that were given up and records that could not be read",
                kReading,
                "tocsin dlq list\n"
                "tocsin dlq list --integration oncall --all --output json\n"},
    CommandHelp{"dlq show", "Show everything about one dead letter", kLetters,
                "tocsin dlq show ntf_4f2k\n"
                "tocsin dlq show telemetry/0@1234 --output json\n"},
    CommandHelp{"dlq replay",
                "Send dead notifications again, or publish refused records again to their topic",
                kLetters,
                "tocsin dlq replay ntf_4f2k\n"
                "tocsin dlq replay --integration oncall/slack --note \"Slack is back\"\n"
                "tocsin dlq replay telemetry/0@1234 --dry-run\n"},
    CommandHelp{"dlq discard", "Mark dead letters as done without sending them", kLetters,
                "tocsin dlq discard ntf_4f2k --note \"told by phone\"\n"
                "tocsin dlq discard telemetry/0@1234\n"},
    CommandHelp{"config show",
                "Print the configuration: each value, the line it comes from, credentials masked",
                "0   printed\n"
                "2   wrong usage\n"
                "3   the configuration has errors\n",
                "tocsin config show\n"
                "tocsin config show --effective\n"
                "tocsin config show tocsin.yaml --effective --output json\n"},
    CommandHelp{"issues resolve", "End an issue by hand that nothing else will end",
                "0   written; with --dry-run: shown\n"
                "1   ID matches no issue or several, or the issue is over\n"
                "2   wrong usage\n"
                "3   the configuration's transport cannot be read\n"
                "4   broker or journal unreachable\n",
                "tocsin issues resolve 207f21eb06 --note \"disk was replaced\"\n"},
    CommandHelp{"groups", "Show what the router has grouped, and why a group waits", kChoose,
                "tocsin groups list\n"
                "tocsin groups show 3fa9c21b\n"},
    CommandHelp{"groups list",
                "List groups: issues, who was told, when the next look is due, and why it waits",
                kReading,
                "tocsin groups list\n"
                "tocsin groups list --issue 207f21eb06\n"
                "tocsin groups list --integration oncall/slack --output json\n"},
    CommandHelp{"groups show",
                "Show a group: its issues, what holds each back, and what each integration knows",
                "0   success\n"
                "1   no group has this hash, or several have\n"
                "2   wrong usage\n"
                "3   the configuration's transport cannot be read\n"
                "4   broker or journal unreachable\n",
                "tocsin groups show 3fa9c21b\n"
                "tocsin groups show 3fa9c21b --output json\n"},
    CommandHelp{"template", "Render messages without sending them", kChoose,
                "tocsin template render oncall\n"
                "tocsin template render oncall/webhook --issue 207f21eb06\n"},
    CommandHelp{"template render",
                "Print the message that each action of a receiver would send; send nothing",
                "0   every message was made\n"
                "1   a message could not be made, ID matches no issue or several, or no action "
                "takes messages\n"
                "2   wrong usage, or no receiver or integration has this name\n"
                "3   the configuration has errors\n"
                "4   broker or journal unreachable\n",
                "tocsin template render oncall\n"
                "tocsin template render oncall/webhook --issue 207f21eb06\n"
                "tocsin template render oncall --resolved --output json\n"},
    CommandHelp{"endpoint", "Show and switch integrations", kChoose,
                "tocsin endpoint list\n"
                "tocsin endpoint disable oncall/slack --comment \"moving workspaces\"\n"},
    CommandHelp{"endpoint list",
                "List integrations: state, waiting notifications, last success, last failure",
                "0   every integration can send\n"
                "1   an integration cannot send now\n"
                "2   wrong usage\n"
                "3   the configuration has errors\n"
                "4   broker or journal unreachable\n",
                "tocsin endpoint list\n"
                "tocsin endpoint list --output json\n"},
    CommandHelp{"endpoint enable",
                "Switch an integration on again, after `disable` or after HTTP 410", kOrder,
                "tocsin endpoint enable oncall/slack\n"},
    CommandHelp{"endpoint disable",
                "Switch an integration off; its notifications wait until it is on again", kOrder,
                "tocsin endpoint disable oncall/slack --comment \"moving workspaces\"\n"},
    CommandHelp{"endpoint probe",
                "Send a waiting notification now, despite back-off, and show the answer",
                "0   it arrived\n"
                "1   it failed, nothing waits, or the integration is switched off\n"
                "2   wrong usage, or no integration has this ID\n"
                "3   the configuration has errors\n"
                "4   broker or journal unreachable\n"
                "75  no attempt within --wait; is a router running?\n",
                "tocsin endpoint probe oncall/slack\n"
                "tocsin endpoint probe oncall/slack --wait 1m\n"},
    CommandHelp{"breaker", "Reset circuit breakers", kChoose,
                "tocsin breaker reset oncall/slack\n"},
    CommandHelp{"breaker reset",
                "Close the breaker of an integration, and end the pause it was asked for", kOrder,
                "tocsin breaker reset oncall/slack\n"},
    CommandHelp{"routes", "Show the routing tree, and test where labels lead", kChoose,
                "tocsin routes tree\n"
                "tocsin routes test rule=overfit severity=error --expect oncall\n"},
    CommandHelp{"routes tree",
                "Print the routing tree with effective settings, and which are inherited",
                "0   printed\n"
                "2   wrong usage\n"
                "3   the configuration has errors\n",
                "tocsin routes tree\n"
                "tocsin routes tree -c next.yaml --output json\n"},
    CommandHelp{"routes test", "Show which routes and receivers an issue with given labels reaches",
                kRouteTest,
                "tocsin routes test rule=overfit severity=error job=digits\n"
                "tocsin routes test rule=overfit severity=error --expect oncall,archive\n"
                "tocsin routes test severity=critical --at 2026-11-28T03:00:00+01:00\n"
                "tocsin routes test --file routes_test.yaml\n"},
    CommandHelp{"routes explain",
                "Show where labels lead, and which matcher failed on each other route", kRouteTest,
                "tocsin routes explain rule=overfit severity=error\n"
                "tocsin routes explain --issue 207f21eb06\n"},
    CommandHelp{"simulate",
                "Replay recorded events through the router of a configuration; send nothing",
                "0   played\n"
                "1   the file cannot be read, or a line is no event\n"
                "2   wrong usage\n"
                "3   the configuration has errors\n"
                "4   broker or journal unreachable\n",
                "tocsin simulate -c next.yaml --since 24h\n"
                "tocsin simulate -c next.yaml --events events.jsonl --decisions\n"
                "tocsin simulate --from ./tocsin-data --output json\n"},
};

}  // namespace

std::span<const CommandHelp> operator_help() noexcept { return kOperatorHelp; }

}  // namespace tocsin::app
