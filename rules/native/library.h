// A shared object with a native rule: found trustworthy, loaded, and its functions.
#pragma once

#include <memory>
#include <string>

#include "core/result.h"
#include "core/value.h"
#include "rules/native/tocsin_rule.h"

namespace tocsin::rules::native {

/// The functions of a library, which stays loaded until the process ends.
struct Library {
  std::string path;
  core::Value description;  // what tocsin_rule_describe says
  decltype(&tocsin_rule_create) create = nullptr;
  decltype(&tocsin_rule_init) init = nullptr;
  decltype(&tocsin_rule_update) update = nullptr;
  decltype(&tocsin_rule_destroy) destroy = nullptr;
};

/// invalid_argument: the path is relative, others may write the file or its folder, it cannot be
/// loaded, lacks a function, has another ABI version, or describes itself in no JSON.
core::Result<std::shared_ptr<const Library>> load_library(const std::string& path);

}  // namespace tocsin::rules::native
