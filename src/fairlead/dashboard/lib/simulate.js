// Simulations of the last day. One runs at a time: a newer question waits for the older one.
import { post } from "./api.js";

const PAUSE = 1_000; // ms
const PATIENCE = 30; // times
const LONGEST = 70_000; // ms

export async function simulate(body, cancelled) {
  for (let tries = 0; ; tries += 1) {
    try {
      return await post("/api/v1/simulations", { body, signal: cancelled, within: LONGEST });
    } catch (error) {
      if (error.code !== "simulation_running" || tries === PATIENCE) throw error;
      await new Promise((done) => setTimeout(done, PAUSE));
      cancelled?.throwIfAborted();
    }
  }
}
