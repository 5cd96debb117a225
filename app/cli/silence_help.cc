// Help of the commands that keep messages back: silences and acknowledgements.
#include <array>

#include "app/cli/help_table.h"

namespace tocsin::app {
namespace {

constexpr std::array kSilenceHelp{
    CommandHelp{"silence",
                "Mute matching issues: no notifications and no stops until the silence ends",
                kChoose,
                "tocsin silence add --run digits --for 2h --comment \"known, looked at\"\n"
                "tocsin silence preview 'rule=\"overfit\"'\n"
                "tocsin silence list\n"},
    CommandHelp{"silence add", "Mute matching issues for a while",
                "0   the silence is written; with --dry-run: matching issues shown\n"
                "1   RUN matches no run or several, or no time interval has this name\n"
                "2   wrong usage, an invalid matcher, or a silence that needs --force\n"
                "3   the configuration's transport cannot be read\n"
                "4   broker or journal unreachable\n",
                "tocsin silence add --run digits --for 2h --comment \"known, looked at\"\n"
                "tocsin silence add 'rule=\"overfit\"' --actions stop_training --comment \"let "
                "them run\"\n"
                "tocsin silence add --job digits --until-resolved --comment \"disk is being "
                "swapped\"\n"
                "tocsin silence add --job digits --weekdays sunday --times 02:00-04:00 --location "
                "Europe/Berlin --comment \"maintenance\"\n"},
    CommandHelp{"silence update", "Set another end or comment of a silence, or what it matches",
                "0   the change is written; with --dry-run: shown\n"
                "1   ID matches no silence or several, or somebody changed it first\n"
                "2   wrong usage, an invalid matcher, or a silence that needs --force\n"
                "3   the configuration's transport cannot be read\n"
                "4   broker or journal unreachable\n",
                "tocsin silence update sil_4f2k --for 4h\n"
                "tocsin silence update sil_4f2k --comment \"waiting for the new disk\"\n"},
    CommandHelp{"silence preview",
                "List the issues that matchers meet: firing now, and ended in the last 24 h",
                "0   success\n"
                "1   RUN matches no run or several\n"
                "2   wrong usage, or an invalid matcher\n"
                "3   the configuration's transport cannot be read\n"
                "4   broker or journal unreachable\n",
                "tocsin silence preview 'rule=~\"nan_.*\"' --job digits\n"},
    CommandHelp{"silence query", "List silences that name these values", kReading,
                "tocsin silence query job=\"digits\"\n"
                "tocsin silence query --quiet rule=\"overfit\"\n"},
    CommandHelp{"silence export", "Write active and pending silences as JSON", kReading,
                "tocsin silence export > silences.json\n"},
    CommandHelp{"silence import", "Add the silences of an exported file",
                "0   imported; expired ones and those that are there already are skipped\n"
                "1   the file cannot be read\n"
                "2   wrong usage, or a silence of the file is refused: nothing is imported\n"
                "3   the configuration's transport cannot be read\n"
                "4   broker or journal unreachable\n",
                "tocsin silence import silences.json\n"},
    CommandHelp{"silence list", "List active and pending silences", kReading,
                "tocsin silence list\n"
                "tocsin silence list --all --output json\n"},
    CommandHelp{"silence expire", "End a silence now",
                "0   ended\n"
                "1   ID matches no silence or several, or somebody changed it first\n"
                "2   wrong usage\n"
                "3   the configuration's transport cannot be read\n"
                "4   broker or journal unreachable\n",
                "tocsin silence expire sil_4f2k\n"},
    CommandHelp{"ack", "Take issues on: no repeats and no escalation while they fire",
                "0   acknowledged, or taken back; with --dry-run: what would be, shown\n"
                "1   WHAT matches nothing that fires, or several things\n"
                "2   wrong usage\n"
                "3   the configuration's transport cannot be read\n"
                "4   broker or journal unreachable\n",
                "tocsin ack 8f3a91c2 --note \"looking at it\"\n"
                "tocsin ack digits --note \"known since Friday\" --for 8h\n"
                "tocsin ack 8f3a91c2 --take-back\n"},
    CommandHelp{"verdict", "Say whether an issue was worth telling: useful, noise or known",
                "0   recorded, or taken back; with --dry-run: what would be, shown\n"
                "1   ISSUE matches no issue or several, or has no verdict to take back\n"
                "2   wrong usage\n"
                "3   the configuration's transport cannot be read\n"
                "4   broker or journal unreachable\n",
                "tocsin verdict 8f3a91c2 noise --note \"the loader restarts every night\"\n"
                "tocsin verdict 8f3a91c2 --take-back\n"},
    CommandHelp{"note", "Write a note on an issue, for whoever looks at it later",
                "0   written; with --dry-run: the issue, shown\n"
                "1   ISSUE matches no issue or several, or has 100 notes\n"
                "2   wrong usage\n"
                "3   the configuration's transport cannot be read\n"
                "4   broker or journal unreachable\n",
                "tocsin note 8f3a91c2 \"node-7 had a bad cable\"\n"},
    CommandHelp{"pin", "Pin a run, so that the page's stores keep it whatever its age",
                "0   pinned, or taken away; with --dry-run: what would be, shown\n"
                "1   RUN matches no run or several, or has no pin to take away\n"
                "2   wrong usage\n"
                "3   the configuration's transport cannot be read\n"
                "4   broker or journal unreachable\n",
                "tocsin pin 4e3046d4\n"
                "tocsin pin digits --take-back\n"},
    CommandHelp{"agent", "Change how often a node's agent samples, and what, while it runs",
                kChoose,
                "tocsin agent set n7 --interval 100ms --for 10m\n"
                "tocsin agent show\n"},
    CommandHelp{"agent show", "List what nodes' agents were asked to sample, and their answers",
                kReading,
                "tocsin agent show\n"
                "tocsin agent show n7 --output json\n"},
    CommandHelp{"agent set", "Ask a node's agent to sample more or less often, or other things",
                "0   the agent samples so; with --dry-run: what would be asked, shown\n"
                "1   the agent refused\n"
                "2   wrong usage\n"
                "3   the configuration's transport cannot be read\n"
                "4   broker or journal unreachable\n"
                "75  written, and no agent of this name has answered yet\n",
                "tocsin agent set n7 --interval 100ms --for 10m\n"
                "tocsin agent set n7 --collectors cpu,memory\n"},
    CommandHelp{"agent reset", "End what a node's agent was asked; its own file decides again",
                "0   nothing is asked of it any more; with --dry-run: shown\n"
                "1   nothing was asked of it\n"
                "2   wrong usage\n"
                "3   the configuration's transport cannot be read\n"
                "4   broker or journal unreachable\n",
                "tocsin agent reset n7\n"},
};

}  // namespace

std::span<const CommandHelp> silence_help() noexcept { return kSilenceHelp; }

}  // namespace tocsin::app
