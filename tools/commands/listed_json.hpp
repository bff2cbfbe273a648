// What `stageline list` prints, as JSON.
#pragma once

#include <string>

#include "tools/base/json.hpp"

namespace stageline::cli {

Json schedules_json();
Json partitioners_json();
/// Models by name, families of language models, and the kinds of devices that they are priced for.
Json priced_models_json();
Json software_json();
Json clusters_json();
Json collectives_json();
Json traces_json();

}  // namespace stageline::cli
