// The published numbers, each once, as printed.
#pragma once

#include <array>
#include <limits>
#include <string_view>

namespace stageline::lab {

/// Zhang & Abdelrahman, "Pipelined Training with Stale Weights in Deep Convolutional Neural
/// Networks", arXiv 1912.12675, doi 10.1155/2021/3839543.
///
/// Table 5: CIFAR-10, two GTX 1060, 4-stage; seconds of a whole training, and the speed-ups over
/// the non-pipelined one (truncated, not rounded, to two decimals, except in the last row).
struct ZhangSpeedup {
  std::string_view title;
  std::string_view model;    // in our spelling
  int ppv = 0;               // convolutions before the registers
  double non_pipelined = 0;  // s
  double pipelined = 0;      // s
  double hybrid = 0;         // s
  double pipelined_speedup = 0;
  double hybrid_speedup = 0;
};
inline constexpr std::array<ZhangSpeedup, 4> zhang_table5 = {{
    {"ResNet-56", "resnet56", 19, 6745, 4090, 5429, 1.65, 1.24},
    {"ResNet-110", "resnet110", 37, 13150, 7570, 10452, 1.73, 1.26},
    {"ResNet-224", "resnet224", 75, 27231, 14998, 21245, 1.81, 1.28},
    {"ResNet-362", "resnet362", 121, 44814, 24640, 34814, 1.82, 1.29},
}};

/// The same table: accuracies, %.
struct ZhangAccuracy {
  std::string_view title;
  double non_pipelined = 0;
  double pipelined = 0;
  double hybrid = 0;
};
inline constexpr std::array<ZhangAccuracy, 4> zhang_accuracies = {{
    {"ResNet-56", 92.63, 92.89, 92.75},
    {"ResNet-110", 93.59, 92.88, 93.55},
    {"ResNet-224", 92.77, 91.39, 93.33},
    {"ResNet-362", 93.46, 90.53, 93.98},
}};

/// The same paper's abstract: points of accuracy lost with only early layers pipelined, and with
/// the deepest pipelines ("up to"; 0: not given).
struct ZhangLoss {
  std::string_view title;
  std::string_view model;  // in our spelling
  double early = 0;
  double deep = 0;
};
inline constexpr std::array<ZhangLoss, 4> zhang_losses = {{
    {"LeNet-5", "lenet5", 0.4, 0},
    {"AlexNet", "alexnet_cifar", 4, 0},
    {"VGG-16", "vgg16_cifar", 0.83, 12},
    {"ResNet-20", "resnet20", 1.45, 8.5},
}};

/// The same paper: share of stale weights with the registers behind the first (16-channel) group,
/// and number of all weights; 0: not given.
struct ZhangShare {
  std::string_view title;
  std::string_view model;
  int ppv = 0;
  double percent = 0;
  int parameters = 0;
};
inline constexpr std::array<ZhangShare, 5> zhang_shares = {{
    {"ResNet-20", "resnet20", 7, 5.37, 0},
    {"ResNet-56", "resnet56", 19, 4.98, 853018},
    {"ResNet-110", "resnet110", 37, 4.89, 1727962},
    {"ResNet-224", "resnet224", 75, 4.85, 3575066},
    {"ResNet-362", "resnet362", 121, 4.83, 5811034},
}};

/// Table 9: memory over that of non-pipelined training, 4-stage, of PipeDream and of stale weights.
/// MB are 2^20 bytes.
struct ZhangMemory {
  std::string_view title;
  std::string_view model;        // in our spelling
  int ppv = 0;                   // convolutions before the registers
  double activations = 0;        // MB at batch 1
  int batch = 0;                 // images
  double weights = 0;            // MB
  double pipedream_percent = 0;  // more than non-pipelined
  double stale_percent = 0;      // more than non-pipelined
  bool layers_printed = true;    // or of a common form, which ours then has
};
inline constexpr std::array<ZhangMemory, 5> zhang_table9 = {{
    {"LeNet-5", "lenet5", 2, 0.06, 128, 0.24, 109, 97},
    {"AlexNet", "alexnet_cifar", 3, 0.88, 128, 88.87, 214, 37, false},
    {"VGG-16, CIFAR", "vgg16_cifar", 2, 3.30, 128, 58.16, 124, 75, false},
    {"ResNet-20", "resnet20", 7, 3.84, 128, 1.03, 61, 60},
    {"VGG-16, ImageNet", "vgg16", 2, 218.59, 32, 527.79, 105, 77},
}};

/// Unnikrishnan & Parhi, "LayerPipe", arXiv 2108.06629, abstract: gain over PipeDream in percent,
/// on average and with 7 to 9 processors ("upwards of").
inline constexpr double layerpipe_average = 25;
inline constexpr double layerpipe_most = 80;
inline constexpr std::array<int, 3> layerpipe_processors = {7, 8, 9};
/// The networks of its evaluation.
struct LayerPipeNet {
  std::string_view title;
  std::string_view model;
  std::string_view trace;  // bundled measured trace; empty: none
};
inline constexpr std::array<LayerPipeNet, 5> layerpipe_nets = {{
    {"AlexNet", "alexnet", "alexnet-cpu"},
    {"VGG-11", "vgg11", ""},
    {"VGG-16", "vgg16", "vgg16-cpu"},
    {"ResNet-18", "resnet18", ""},
    {"ResNet-50", "resnet50", "resnet50-cpu"},
}};

/// PipeFB, abstract: range of the speed-up over PipeDream with data transfer.
inline constexpr double pipefb_from = 1.48;
inline constexpr double pipefb_to = 2.27;

}  // namespace stageline::lab
