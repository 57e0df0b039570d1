// Runs the suite many times at once. A run takes its process for its own, so each is given a copy of the suite's module,
// its own arguments at the moment it reads them, and an end that ends only that run. Usage: parallel.mjs COUNT OUT
// ARGUMENT…; what run N found is in OUT/N.

import { isMainThread, Worker, workerData } from "node:worker_threads";
import { availableParallelism } from "node:os";

const SUITE = new URL("node_modules/@modelcontextprotocol/conformance/dist/index.js", import.meta.url);

if (isMainThread) {
  const [count, out, ...words] = process.argv.slice(2);
  const threads = Math.min(availableParallelism(), 4);
  const share = (thread) => Array.from({ length: Number(count) }, (_, n) => n).filter((n) => n % threads === thread);
  const ended = Array.from({ length: threads }, (_, thread) => new Promise((resolve, reject) => {
    const worker = new Worker(new URL(import.meta.url), { workerData: { numbers: share(thread), out, words } });
    worker.on("error", reject);
    worker.on("exit", resolve);
  }));
  const codes = await Promise.all(ended);
  process.exit(Math.max(...codes));
} else {
  const { numbers, out, words } = workerData;
  const exit = process.exit;
  let left = numbers.length;
  process.exit = () => {
    left -= 1;
    if (left === 0) exit(0);
  };
  console.log = console.error = console.warn = () => {};
  for (const number of numbers) {
    process.argv = [process.execPath, "conformance", ...words, "-o", `${out}/${number}`];
    await import(`${SUITE}?run=${number}`);
  }
}
