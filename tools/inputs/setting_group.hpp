// The groups of settings, and of the other flags of a command.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace stageline {

/// In the order of --help. A row of the settings has one of those up to `output`; `other` holds the
/// flags that belong to no group.
enum class SettingGroup : std::uint8_t {
  model,
  schedule,
  cluster,
  parallelism,
  memory,
  communication,
  uncertainty,
  training,
  search,
  output,
  other
};
inline constexpr std::array all_setting_groups{
    SettingGroup::model,       SettingGroup::schedule, SettingGroup::cluster,
    SettingGroup::parallelism, SettingGroup::memory,   SettingGroup::communication,
    SettingGroup::uncertainty, SettingGroup::training, SettingGroup::search,
    SettingGroup::output,      SettingGroup::other};

/// Its heading in --help: "Communication"; "Options" of `other`.
std::string_view name(SettingGroup group);

}  // namespace stageline
