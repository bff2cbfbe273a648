// A sentence for each word of the page.
import { element } from '../../report/page/web/dom.js';

/** @type {[string, string][]} */
export const glossary = [
  ['layers', 'What is cut into stages: equal layers of the times below, or those of a bundled model.'],
  ['model', 'A language model and its device, such as llama3-70b@h100; options follow, such as ,seq=4096 for its tokens.'],
  ['cluster', 'The machines: h100x8*8 is eight of eight H100; empty is as many of the model’s device as it takes.'],
  ['tp', 'Tensor-parallel ranks: so many devices share each layer.'],
  ['dp', 'Data-parallel replicas: so many pipelines, each with micro-batches of its own.'],
  ['ZeRO', 'What data-parallel ranks divide: 1 optimizer state, 2 gradients, too, 3 weights, too.'],
  ['precision', 'The bytes of a parameter, its gradient and its optimizer state, and the products; empty: as the model says.'],
  ['micro-batch size', 'How many sequences a micro-batch has.'],
  ['sequence parallel', 'Tensor-parallel ranks share the norms and dropouts, too, each for a part of the sequence.'],
  ['pipeline ranks', 'How many parts the pipeline has; a rank is as many devices as tp says.'],
  ['devices', 'How many devices the pipeline has; each runs one stage, or several.'],
  ['micro-batches', 'How many pieces a step is cut into; they follow each other through the stages.'],
  ['F', 'The time of the forward of a micro-batch on a device.'],
  ['I', 'The time of the first half of the backward: the gradient of the input, which the stage before waits for.'],
  ['W', 'The time of the second half of the backward: the gradient of the weights, which only the update waits for.'],
  ['update', 'The time of the optimizer on a device, once a step.'],
  ['bandwidth', 'How fast the link of each device carries bytes.'],
  ['latency', 'What each message takes beyond its bytes.'],
  ['message', 'The size of the activation that a stage sends to the next one; its gradient is as large.'],
  ['memory', 'What a device has; 0 is no limit.'],
  ['weights', 'The size of the weights on a device.'],
  ['stash', 'What a micro-batch leaves on a device from its forward to its backward.'],
  ['schedule', 'The order in which each device runs its forwards and backwards; A and B are shown side by side.'],
  ['step', 'The time from the end of one step to the end of the next, in a long run.'],
  ['bubble', 'The share of the devices’ time in which they do nothing.'],
  ['speed-up', 'How many times faster than one device that does the same work.'],
  ['throughput', 'How many samples a second go through the pipeline.'],
  ['tokens/s/GPU', 'How many tokens a second each device trains on; below it the range of published runs alike.'],
  ['MFU', 'The share of the devices’ peak rate that the operations of the model itself need.'],
  ['peak memory', 'The most that any device holds at once, and which device it is.'],
  ['time', 'How far the diagram has been played: later ops are pale, and the table below it says what each device does then.'],
  ['speed', 'How long the whole run takes to play; “1 s shows” is how much of its time a second of yours has.'],
  ['runs', 'The op that a device runs at the time of the diagram.'],
  ['done', 'How many of its ops a device has ended by the time of the diagram, messages and copies aside.'],
  ['in flight', 'How many micro-batches a device has run forward and not yet wholly backward; of each stage that it holds.'],
  ['holds', 'The memory of a device at the time of the diagram; the bar is its share of the highest peak.'],
  ['links add', 'The share of the step that free links would save.'],
];

export function words_of_the_page() {
  return element('details', { class: 'words' }, element('summary', {}, 'What the words mean'),
    element('dl', {}, ...glossary.flatMap(
      ([word, sentence]) => [element('dt', {}, word), element('dd', {}, sentence)])));
}
