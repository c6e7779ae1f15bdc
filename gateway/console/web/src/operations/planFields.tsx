import type { Plan } from "./api";
import type { Step } from "./plan";
import { useText } from "./text";

// Fields of a plan, for one instance and for many.

interface StepFieldsProps {
  steps: readonly Step[];
  /** By machine and state. */
  chosen: Readonly<Record<string, string>>;
  onChoose: (chosen: Record<string, string>) => void;
}

/** Asks for each state where instances in it go on. */
export function StepFields({ steps, chosen, onChoose }: StepFieldsProps) {
  const t = useText();
  return steps.map((step) => (
    <label key={`${step.machine} ${step.from}`} className="field">
      <span className="label">{t("inspect.stepFrom", { state: step.label })}</span>
      <select value={step.chosen} onChange={({ target }) => onChoose({ ...chosen, [`${step.machine} ${step.from}`]: target.value })}>
        {step.chosen === "" && <option value="">{t("inspect.choose")}</option>}
        {step.to.map((node) => (
          <option key={node.nodeId} value={node.nodeId}>
            {node.label}
          </option>
        ))}
      </select>
    </label>
  ));
}

type Timers = NonNullable<Plan["timers"]>;

const timerWays = ["keep", "restart", "drop"] as const;
const timerTexts = { keep: "inspect.timersKeep", restart: "inspect.timersRestart", drop: "inspect.timersDrop" } as const;

export function TimersField({ value, onChoose }: { value: Timers; onChoose: (way: Timers) => void }) {
  const t = useText();
  return (
    <label className="field">
      <span className="label">{t("inspect.timersOf")}</span>
      <select value={value} onChange={({ target }) => onChoose(target.value as Timers)}>
        {timerWays.map((way) => (
          <option key={way} value={way}>
            {t(timerTexts[way])}
          </option>
        ))}
      </select>
    </label>
  );
}

interface VersionsProps {
  versions: number[];
  value: number;
  current: number;
  onChoose: (version: number) => void;
}

export function Versions({ versions, value, current, onChoose }: VersionsProps) {
  const t = useText();
  return (
    <select value={value} onChange={(event) => onChoose(Number(event.target.value))}>
      {versions.map((each) => (
        <option key={each} value={each}>
          {each === current ? t("workflows.versionCurrent", { version: each }) : each}
        </option>
      ))}
    </select>
  );
}
