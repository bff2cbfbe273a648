// A language model by name: "llama3-70b,tp=8,seq=8192", "path/config.json", "transformer,layers=…".
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cost_models/roofline.hpp"
#include "cost_models/transformers/config.hpp"
#include "cost_models/transformers/kernel_rates.hpp"
#include "cost_models/transformers/kernel_times.hpp"
#include "cost_models/transformers/kernels.hpp"
#include "cost_models/transformers/software.hpp"

namespace stageline {

/// Whether it is a name of families(), "transformer", or a file that ends in .json.
bool is_language_model(std::string_view name);

/// "transformer" and those of families().
std::vector<std::string> language_model_names();

/// Puts the rates of links that "model:NAME@DEVICE,network=0.5" spells into `rates`, and returns
/// whether there are any: they are of the links of a cluster, and of no layer. Throws as
/// LanguageSpelling::take().
bool take_link_rates(const std::string& spec, KernelRates& rates);

/// What a spelling says of a language model, option by option.
class LanguageSpelling {
 public:
  /// is_language_model(name). `config`: content of the file where it is one. Throws as
  /// read_hugging_face().
  LanguageSpelling(const std::string& name, const std::string& config);

  /// Returns false for an option that is none of options(). Throws UsageError for a value that is
  /// out of range. "software" sets what a generation has, and goes before all other options.
  bool take(const std::string& key, const std::string& value);
  /// Those of transformer_options(), those of LanguageForm but its batch and bytes an element
  /// (fused by default where attention is), and the names of kernel_constants() but the
  /// optimizer's, whose values go before all other rates.
  static std::vector<std::string> options();
  /// What the software sets for models with experts, where no option has said it. Behind all
  /// take().
  void complete_software();

  Sharding& sharding() { return form_.sharding; }

  /// Rates of kernels: the calibration's, the built-in ones of the kind of device, or the defaults.
  /// Throws as language_model(), and where the calibration is of another kind.
  Model priced(const DeviceKind& device, const RooflineOptions& options,
               const Calibration* calibration) const;
  /// The kernels of the same. Throws as priced().
  std::vector<LayerKernelTimes> kernels(const DeviceKind& device, const RooflineOptions& options,
                                        const Calibration* calibration) const;

 private:
  // What is priced on a device: the sizes, form and rates of the spelling and the device.
  struct Taken {
    TransformerConfig config;
    LanguageForm form;
    TakenRates rates;
    std::string of_software;  // the options that it has set
  };
  Taken taken(const DeviceKind& device, const Calibration* calibration) const;
  bool set(const std::string& key, const std::string& value);
  void set_of_software(std::string_view options);
  void drop_unmeasured_attention(const DeviceKind& device, LanguageForm& form,
                                 std::string& of_software) const;
  void drop_idle_exchange(LanguageForm& form, std::string& of_software) const;
  void drop_foreign_dispatcher(const DeviceKind& device, LanguageForm& form,
                               std::string& of_software) const;
  bool take_of_experts(const std::string& key, const std::string& value);

  TransformerConfig config_;
  LanguageForm form_;
  std::vector<std::string> given_;  // keys of the config that were changed, in order
  std::optional<bool> fused_;
  struct GivenRate {
    const KernelConstant* constant = nullptr;
    double value = 0;
    bool of_software = false;
  };
  std::vector<GivenRate> rates_;
  const SoftwareGeneration* software_ = nullptr;
  std::string of_software_;        // its options that hold: "attention=flash,fused=yes"
  std::vector<std::string> said_;  // keys that were taken, beside the software's
  bool open_ = false;              // "transformer"
};

}  // namespace stageline
