/**
 * The orb: a drawing that is the state. Owns its shapes; knows nothing of React or of the call.
 * Ink is the person's turn, the accent is the agent's. Each state has a shape of its own, so that colour is never alone.
 */
import type { AgentState } from "voxbridge/react";

export interface Palette {
  ink: string;
  warn: string;
  accent: string;
  line: string;
}

export interface Moment {
  /** Seconds; stands still where the person wants less motion. */
  time: number;
  /** 0 to 1, loudness of the person and of the agent. */
  input: number;
  output: number;
}

/** How much of each shape a state shows, 0 to 1. */
interface Shapes {
  radius: number;
  core: number;
  ring: number;
  rays: number;
  waves: number;
  dots: number;
  dashes: number;
  sweep: number;
  flat: number;
  broken: number;
  pair: number;
  /** How much of the sweep is in the colour of what is interrupted. */
  amber: number;
}

const NONE: Shapes = { radius: 0.66, core: 0, ring: 0, rays: 0, waves: 0, dots: 0, dashes: 0, sweep: 0, flat: 0, broken: 0, pair: 0, amber: 0 };
const STATES: Record<AgentState, Shapes> = {
  idle: { ...NONE, core: 0.95, waves: 0.35 },
  connecting: { ...NONE, core: 0.15, sweep: 1 },
  listening: { ...NONE, core: 0.28, ring: 1 },
  user_speaking: { ...NONE, radius: 0.56, core: 0.08, rays: 1 },
  thinking: { ...NONE, radius: 0.6, core: 0.2, ring: 0.35, dots: 1 },
  calling_tool: { ...NONE, radius: 0.62, core: 0.2, dashes: 1, dots: 0.6 },
  speaking: { ...NONE, radius: 0.66, core: 1, waves: 1 },
  restoring: { ...NONE, core: 0.15, sweep: 1, dashes: 0.25, amber: 1 },
  reconnecting: { ...NONE, radius: 0.6, core: 0.06, broken: 1, amber: 1 },
  elsewhere: { ...NONE, radius: 0.62, pair: 1 },
  ended: { ...NONE, radius: 0.58, ring: 0.5, flat: 1 },
};
const RAYS = 72;
/** How much of the glow is left on its way out, in percent. */
const FADING: [at: number, share: number][] = [
  [0, 100],
  [0.2, 64],
  [0.4, 36],
  [0.6, 16],
  [0.8, 4],
  [1, 0],
];
/** From the light at the upper left to the shade at the lower right, in steps small enough to leave no edge. */
const SHADING: [at: number, mix: string][] = [
  [0, "#c4fff4 58%"],
  [0.12, "#c4fff4 46%"],
  [0.25, "#a8f5e6 30%"],
  [0.4, "#a8f5e6 14%"],
  [0.55, "#a8f5e6 4%"],
  [0.7, "black 6%"],
  [0.85, "black 17%"],
  [1, "black 30%"],
];

export class Orb {
  #shown: Shapes = { ...STATES.idle };
  readonly #history = new Float32Array(RAYS / 2);
  #input = 0;
  #output = 0;

  /** Draw one frame into a square of `size` pixels; `ease` (0 to 1) is how far the shapes go towards the state's. */
  draw(context: CanvasRenderingContext2D, size: number, state: AgentState, moment: Moment, palette: Palette, ease: number): void {
    const target = STATES[state];
    for (const name of Object.keys(NONE) as (keyof Shapes)[]) this.#shown[name] += (target[name] - this.#shown[name]) * ease;
    this.#input += (Math.min(1, moment.input * 5) - this.#input) * Math.max(ease, 0.3);
    this.#output += (Math.min(1, moment.output * 4) - this.#output) * Math.max(ease, 0.3);
    this.#history.copyWithin(1, 0);
    this.#history[0] = this.#input;

    const shown = this.#shown;
    const radius = (size / 2) * shown.radius;
    context.clearRect(0, 0, size, size);
    context.save();
    context.translate(size / 2, size / 2);
    context.lineCap = "round";
    this.#glow(context, size, radius, palette);
    this.#waves(context, radius, moment.time, palette);
    this.#core(context, radius, moment.time, palette);
    this.#ring(context, radius, palette);
    this.#rays(context, radius, size, moment.time, palette);
    this.#dashes(context, radius, moment.time, palette);
    this.#dots(context, radius, moment.time, palette);
    this.#sweep(context, radius, moment.time, palette);
    this.#flat(context, radius, palette);
    this.#broken(context, radius, moment.time, palette);
    this.#pair(context, radius, palette);
    context.restore();
  }

  #glow(context: CanvasRenderingContext2D, size: number, radius: number, { accent }: Palette): void {
    const strength = this.#shown.core * (0.16 + 0.2 * this.#output * this.#shown.waves);
    if (strength < 0.005) return;
    const glow = context.createRadialGradient(0, 0, radius * 0.7, 0, 0, size / 2);
    // It has faded to nothing where the canvas ends, or the square would be seen.
    for (const [at, share] of FADING) glow.addColorStop(at, `color-mix(in srgb, ${accent} ${share}%, transparent)`);
    context.globalAlpha = strength;
    context.fillStyle = glow;
    context.beginPath();
    context.arc(0, 0, size / 2, 0, 2 * Math.PI);
    context.fill();
    context.globalAlpha = 1;
  }

  /** A closed curve around the centre, with three slow harmonics. */
  #contour(context: CanvasRenderingContext2D, radius: number, swell: number, time: number, phase: number): void {
    context.beginPath();
    for (let i = 0; i <= 120; i++) {
      const angle = (i / 120) * 2 * Math.PI;
      const bend = Math.sin(3 * angle + time * 1.3 + phase) * 0.5 + Math.sin(5 * angle - time * 1.7 + phase * 2) * 0.3 + Math.sin(2 * angle + time * 0.7 - phase) * 0.4;
      const r = radius * (1 + swell * bend);
      context.lineTo(r * Math.cos(angle), r * Math.sin(angle));
    }
    context.closePath();
  }

  #waves(context: CanvasRenderingContext2D, radius: number, time: number, { accent }: Palette): void {
    const { waves } = this.#shown;
    if (waves < 0.02) return;
    context.strokeStyle = accent;
    for (let loop = 3; loop >= 1; loop--) {
      const reach = 1 + loop * (0.06 + 0.1 * this.#output) * waves;
      context.globalAlpha = (waves * 0.5) / loop;
      context.lineWidth = radius * 0.012;
      this.#contour(context, radius * reach, (0.02 + 0.07 * this.#output) * waves, time, loop * 1.9);
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  #core(context: CanvasRenderingContext2D, radius: number, time: number, { accent }: Palette): void {
    const { core, waves } = this.#shown;
    if (core < 0.02) return;
    const swell = (0.012 + 0.05 * this.#output) * waves;
    const body = context.createRadialGradient(-radius * 0.4, -radius * 0.5, 0, -radius * 0.12, -radius * 0.15, radius * 1.3);
    for (const [at, mix] of SHADING) body.addColorStop(at, `color-mix(in oklab, ${accent}, ${mix})`);
    context.globalAlpha = core;
    context.fillStyle = body;
    this.#contour(context, radius * (0.94 + 0.08 * this.#output * waves), swell, time, 0);
    context.fill();
    context.globalAlpha = 1;
  }

  #ring(context: CanvasRenderingContext2D, radius: number, { ink, accent }: Palette): void {
    const { ring } = this.#shown;
    if (ring < 0.02) return;
    context.globalAlpha = ring;
    context.strokeStyle = this.#shown.flat > 0.5 ? ink : accent;
    context.lineWidth = radius * (0.022 + 0.05 * this.#input);
    context.beginPath();
    context.arc(0, 0, radius * (1.02 + 0.1 * this.#input), 0, 2 * Math.PI);
    context.stroke();
    context.globalAlpha = 1;
  }

  /** The person's voice: rays around the rim, newest at the top. */
  #rays(context: CanvasRenderingContext2D, radius: number, size: number, time: number, { ink }: Palette): void {
    const { rays } = this.#shown;
    if (rays < 0.02) return;
    const room = size / 2 - radius - size * 0.03;
    context.strokeStyle = ink;
    context.lineWidth = Math.max(2, radius * 0.035);
    context.globalAlpha = rays;
    context.beginPath();
    for (let i = 0; i < RAYS; i++) {
      const age = i < RAYS / 2 ? i : RAYS - 1 - i;
      const angle = ((i + 0.5) / RAYS) * 2 * Math.PI - Math.PI / 2;
      const level = this.#history[age] as number;
      const ripple = 0.75 + 0.25 * Math.sin(i * 1.7 + time * 5);
      const length = radius * 0.03 + room * level * ripple * rays;
      context.moveTo(radius * Math.cos(angle), radius * Math.sin(angle));
      context.lineTo((radius + length) * Math.cos(angle), (radius + length) * Math.sin(angle));
    }
    context.stroke();
    context.globalAlpha = 1;
  }

  #dashes(context: CanvasRenderingContext2D, radius: number, time: number, { accent }: Palette): void {
    const { dashes } = this.#shown;
    if (dashes < 0.02) return;
    context.globalAlpha = dashes;
    context.strokeStyle = accent;
    context.lineWidth = radius * 0.09;
    for (let i = 0; i < 10; i++) {
      const from = (i / 10) * 2 * Math.PI + time * 0.5;
      context.beginPath();
      context.arc(0, 0, radius * 1.05, from, from + 0.34);
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  #dots(context: CanvasRenderingContext2D, radius: number, time: number, { accent }: Palette): void {
    const { dots } = this.#shown;
    if (dots < 0.02) return;
    context.fillStyle = accent;
    for (let i = 0; i < 3; i++) {
      const lift = Math.sin(time * 3.4 - i * 0.9);
      context.globalAlpha = dots * (0.65 + 0.35 * lift);
      context.beginPath();
      context.arc((i - 1) * radius * 0.38, -lift * radius * 0.09, radius * 0.105, 0, 2 * Math.PI);
      context.fill();
    }
    context.globalAlpha = 1;
  }

  #sweep(context: CanvasRenderingContext2D, radius: number, time: number, { accent, line, warn }: Palette): void {
    const { sweep } = this.#shown;
    if (sweep < 0.02) return;
    context.globalAlpha = sweep;
    context.lineWidth = radius * 0.03;
    context.strokeStyle = line;
    context.beginPath();
    context.arc(0, 0, radius * 1.02, 0, 2 * Math.PI);
    context.stroke();
    context.strokeStyle = this.#shown.amber > 0.5 ? warn : accent;
    context.beginPath();
    context.arc(0, 0, radius * 1.02, time * 2.6, time * 2.6 + 1.5);
    context.stroke();
    context.globalAlpha = 1;
  }

  #flat(context: CanvasRenderingContext2D, radius: number, { ink }: Palette): void {
    const { flat } = this.#shown;
    if (flat < 0.02) return;
    context.globalAlpha = flat * 0.6;
    context.strokeStyle = ink;
    context.lineWidth = radius * 0.03;
    context.beginPath();
    context.moveTo(-radius * 0.45, 0);
    context.lineTo(radius * 0.45, 0);
    context.stroke();
    context.globalAlpha = 1;
  }

  /** A ring in two halves that were one, with a spark that looks for the way between them. */
  #broken(context: CanvasRenderingContext2D, radius: number, time: number, { warn }: Palette): void {
    const { broken } = this.#shown;
    if (broken < 0.02) return;
    const apart = radius * 0.16 * broken;
    context.globalAlpha = broken;
    context.strokeStyle = context.fillStyle = warn;
    context.lineWidth = radius * 0.045;
    for (const side of [-1, 1]) {
      context.beginPath();
      context.arc(side * apart, 0, radius, side > 0 ? -1.25 : Math.PI - 1.25, side > 0 ? 1.25 : Math.PI + 1.25);
      context.stroke();
    }
    for (let i = -1; i <= 1; i++) {
      context.globalAlpha = broken * (0.4 + 0.6 * Math.max(0, Math.sin(time * 3 - i * 1.1)));
      context.beginPath();
      context.arc(i * radius * 0.3, 0, radius * 0.055, 0, 2 * Math.PI);
      context.fill();
    }
    context.globalAlpha = 1;
  }

  /** Two rings: the call is in the other one. */
  #pair(context: CanvasRenderingContext2D, radius: number, { ink, accent }: Palette): void {
    const { pair } = this.#shown;
    if (pair < 0.02) return;
    const away = radius * 0.36 * pair;
    context.lineWidth = radius * 0.035;
    for (const [side, colour, alpha] of [[-1, ink, 0.35], [1, accent, 1]] as const) {
      context.globalAlpha = pair * alpha;
      context.strokeStyle = colour;
      context.beginPath();
      context.arc(side * away, 0, radius * 0.62, 0, 2 * Math.PI);
      context.stroke();
    }
    context.globalAlpha = pair;
    context.fillStyle = accent;
    context.beginPath();
    context.arc(away, 0, radius * 0.2, 0, 2 * Math.PI);
    context.fill();
    context.globalAlpha = 1;
  }
}
