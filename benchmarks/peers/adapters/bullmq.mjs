// BullMQ on ioredis: `node bullmq.mjs producer|worker`, as job.py and producer.py are for the Python queues.

import { createRequire } from "node:module";
import { connect } from "node:net";
import { createInterface } from "node:readline";

const { BENCH_URL, BENCH_CAPACITY, BENCH_LEASE, BENCH_HOME } = process.env;
const { Queue, Worker } = createRequire(`${BENCH_HOME}/`)("bullmq");
const { hostname: host, port } = new URL(BENCH_URL);
const connection = { host, port: Number(port) };
const LOW = { priority: 10 }; // a job without a priority takes the short way and is ahead of all that have one
const PUSH = Buffer.from("*3\r\n$5\r\nRPUSH\r\n$13\r\nbench:records\r\n$16\r\n");
const END = Buffer.from("\r\n");

function worker() {
  const server = connect(connection);
  server.setNoDelay(true);
  server.write("CLIENT REPLY OFF\r\n");

  function record(number) {
    const bytes = Buffer.alloc(16);
    bytes.writeBigInt64LE(BigInt(number), 0);
    bytes.writeBigInt64LE(process.hrtime.bigint(), 8);
    server.write(Buffer.concat([PUSH, bytes, END]));
  }

  new Worker(
    "bench",
    async ({ data: { number, seconds } }) => {
      if (seconds) await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
      record(number);
    },
    {
      connection,
      concurrency: Number(BENCH_CAPACITY),
      lockDuration: BENCH_LEASE * 1000,
      stalledInterval: BENCH_LEASE * 100,
      maxStalledCount: 5,
      removeOnComplete: { count: 0 },
    },
  );
}

async function producer() {
  const queue = new Queue("bench", { connection, defaultJobOptions: { removeOnComplete: true } });

  async function submit({ first, count, bulk, seconds, priority }) {
    const opts = priority === "low" ? LOW : {};
    const began = process.hrtime.bigint();
    if (bulk) {
      const numbers = Array.from({ length: count }, (_, i) => first + i);
      await queue.addBulk(numbers.map((number) => ({ name: "job", data: { number, seconds }, opts })));
    } else {
      for (let number = first; number < first + count; number++) {
        await queue.add("job", { number, seconds }, opts);
      }
    }
    return `{"began": ${began}, "ended": ${process.hrtime.bigint()}}\n`;
  }

  for await (const line of createInterface({ input: process.stdin })) {
    process.stdout.write(await submit(JSON.parse(line)));
  }
  await queue.close();
}

if (process.argv[2] === "worker") worker();
else await producer();
