// Reads programs where schedules are named.
#include "tools/inputs/given_programs.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "schedulers/aliases.hpp"
#include "sim/base/errors.hpp"
#include "sim/program.hpp"
#include "tools/base/provided_files.hpp"
#include "tools/inputs/program_files.hpp"

namespace stageline {
namespace {

std::string stem_of(const std::string& path) {
  const std::string stem = std::filesystem::path(path).stem().string();
  return stem.empty() || stem == "-" ? "program" : stem;
}

// A schedule may have been given the ending of a file.
void check_there(const std::string& path) {
  if (path == "-" || std::filesystem::exists(path) || provided_file(path)) return;
  const std::string name = stem_of(path);
  const std::string same = read_schedule_name(name);
  const std::string hint =
      same.empty() ? did_you_mean_schedule(name) : fmt::format(" (did you mean \"{}\"?)", same);
  if (hint.empty()) return;  // its reader says it
  throw UsageError(fmt::format("cannot read \"{}\": there is no such file{}", path, hint));
}

// A program may lack the path or the ending of its file.
void check_known(const std::string& name) {
  if (name == "all" || name.empty() || !read_schedule_name(name).empty()) return;
  for (const char* const ending : {"", ".slp", ".csv"}) {
    const std::string file = name + ending;
    if (!is_program_file(file)) continue;
    throw UsageError(
        fmt::format("there is no schedule \"{}\", but a program {}: name it by its path, {}{}",
                    name, file, *ending == '\0' ? "./" : "", file));
  }
}

// A program's item has no knobs behind it.
void check_no_knobs(const std::string& item) {
  const std::size_t colon = item.find(':');
  if (colon == std::string::npos || item.find('=', colon) == std::string::npos) return;
  throw UsageError(fmt::format("{} is a program, which has no knobs; leave out {}",
                               item.substr(0, colon), item.substr(colon)));
}

void read_list(const std::string& list, bool quiet, std::vector<ScheduleSpec>& specs) {
  std::string named;  // a list of items that are no paths
  const auto take_named = [&] {
    if (named.empty()) return;
    for (ScheduleSpec& spec : parse_schedules(named)) specs.push_back(std::move(spec));
    named.clear();
  };
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    const std::string item = list.substr(at, end - at);
    at = end + 1;
    if (is_program_path(item)) {
      take_named();
      specs.push_back(read_schedule_file(item, quiet));
      continue;
    }
    if (item.empty()) parse_schedules(item);  // which refuses it
    if (item.find('=') == std::string::npos) check_known(item);
    named += (named.empty() ? "" : ",") + item;
  }
  take_named();
}

void tell_apart(std::vector<ScheduleSpec>& specs) {
  std::vector<std::string> titles;
  for (const ScheduleSpec& spec : specs) titles.push_back(title(spec));
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (!specs[i].given || std::count(titles.begin(), titles.end(), titles[i]) < 2) continue;
    const GivenProgram& given = *specs[i].given;
    Program program = given.program;
    program.schedule += fmt::format(" ({})", given.path.empty() ? "given" : given.path);
    specs[i] = given_schedule(std::move(program), given.path);
  }
}

int devices_of_program(const Program& program) { return static_cast<int>(program.devices.size()); }

int step_of_program(const Program& program) {
  return program.microbatches / program.settings.sequence_chunks;
}

// `option`: of the command, which says one for all.
int agreed(const std::vector<ScheduleSpec>& schedules, int (*of)(const Program& program),
           const char* what, const char* option) {
  const GivenProgram* first = nullptr;
  for (const ScheduleSpec& spec : schedules) {
    if (!spec.given) continue;
    if (first == nullptr) first = spec.given.get();
    const int here = of(spec.given->program);
    const int there = of(first->program);
    if (here == there) continue;
    throw UsageError(fmt::format("{} has {} {} and {} {}; give {}, or one of them at a time",
                                 first->program.schedule, there, what, spec.given->program.schedule,
                                 here, option));
  }
  return first == nullptr ? 0 : of(first->program);
}

}  // namespace

ScheduleSpec read_schedule_file(const std::string& path, bool quiet) {
  check_no_knobs(path);
  check_there(path);
  Program program = read_program(path, quiet);
  if (program.schedule.empty()) program.schedule = stem_of(path);
  return given_schedule(std::move(program), path);
}

std::vector<ScheduleSpec> read_schedules(const std::vector<std::string>& lists, bool quiet) {
  std::vector<ScheduleSpec> specs;
  for (const std::string& list : lists) {
    if (list.find('\n') != std::string::npos && is_program_text(list)) {
      Program program = parse_program_text(list).program;
      if (program.schedule.empty()) program.schedule = "program";
      specs.push_back(given_schedule(std::move(program)));
    } else {
      read_list(list, quiet, specs);
    }
  }
  tell_apart(specs);
  return specs;
}

int given_devices(const std::vector<ScheduleSpec>& schedules) {
  return agreed(schedules, devices_of_program, "devices", "--devices");
}

int given_microbatches(const std::vector<ScheduleSpec>& schedules) {
  return agreed(schedules, step_of_program, "micro-batches a step", "--microbatches");
}

}  // namespace stageline
