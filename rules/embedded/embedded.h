// Door of the rules that run inside a training process or beside one command, for the program. The hook loads the
// shared library at run time and uses tocsin_engine.h.
#pragma once

#include "rules/embedded/chosen_rules.h"
#include "rules/embedded/local_judge.h"
#include "rules/embedded/plugins_config.h"
