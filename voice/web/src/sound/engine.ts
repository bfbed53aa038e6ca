// The part of sound that a page loads after its first paint.
export {Microphone, type Processing} from './microphone.ts';
export {Output, sinks} from './output.ts';
export {support, type Support} from './support.ts';

export const makeWorker = (): Worker => new Worker(new URL('./codec.worker.ts', import.meta.url), {type: 'module'});
