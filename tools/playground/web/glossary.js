// A sentence for each word of the page.
import { element } from '../../report/page/web/dom.js';

/** @type {[string, string][]} */
export const glossary = [
  ['layers', 'What is cut into stages: equal layers of the times below, or those of a bundled model.'],
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
  ['peak memory', 'The most that any device holds at once, and which device it is.'],
  ['links add', 'The share of the step that free links would save.'],
];

export function words_of_the_page() {
  return element('details', { class: 'words' }, element('summary', {}, 'What the words mean'),
    element('dl', {}, ...glossary.flatMap(
      ([word, sentence]) => [element('dt', {}, word), element('dd', {}, sentence)])));
}
