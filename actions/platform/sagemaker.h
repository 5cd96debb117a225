// Stops a training job of SageMaker by its name, if it has the run's ARN and was created before the run's
// client opened (docs/stopping-on-platforms.md).
#pragma once

#include <memory>

#include "actions/integration/aws_login.h"
#include "actions/platform/platform_http.h"

namespace tocsin::actions {

struct SageMakerConfig {
  PlatformPlace place;
  AwsLogin aws;
};
void read(config::Reader& in, SageMakerConfig& cfg);
std::unique_ptr<PlatformStop> make_sagemaker(const SageMakerConfig& cfg, HttpClient* http);

}  // namespace tocsin::actions
