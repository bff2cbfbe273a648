// Cuts chains of F, I and W for LayerPipe and PipeDream.
#include "tools/lab/papers/layerpipe_cut.hpp"

#include <vector>

namespace stageline::lab {
namespace {

// Appends an item; one without duration is left out.
void add(std::vector<ChainItem>& chain, ChainItem item) {
  if (item.time > Time{}) chain.push_back(item);
}

}  // namespace

Time pipedream_period(const Model& model, int processors) {
  std::vector<ChainItem> chain;
  for (const Layer& layer : model.layers) {
    add(chain,
        {layer.forward + layer.backward, false, static_cast<int>(chain.size()), OpKind::forward});
  }
  return chain_cut(chain, processors, Division::never).largest;
}

Time layerpipe_period(const Model& model, int processors, Division division) {
  std::vector<ChainItem> chain;
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    const Layer& layer = model.layers[l];
    const int number = static_cast<int>(l);
    add(chain, {layer.input_grad, true, number, OpKind::input_grad});
    add(chain, {layer.forward, false, number, OpKind::forward});
    add(chain, {layer.weight_grad, false, number, OpKind::weight_grad});
  }
  return chain_cut(chain, processors, division).largest;
}

double layerpipe_gain(const Model& model, int processors, Division division) {
  return to_seconds(pipedream_period(model, processors)) /
         to_seconds(layerpipe_period(model, processors, division));
}

}  // namespace stageline::lab
