import { Icon } from "../ui/Icon";
import { Notice } from "../ui/Notice";
import { formatClock } from "../words";
import type { DraftStatus } from "./draftSaver";

/** One line about the draft. It is read out when there is time. */
export function DraftLine({ status }: { status: DraftStatus }) {
  return (
    <p className={`draft-line draft-${status.state}`} role="status" aria-live="polite">
      {lineOf(status)}
    </p>
  );
}

function lineOf(status: DraftStatus) {
  switch (status.state) {
    case "idle":
      return "Changes are saved automatically.";
    case "waiting":
    case "saving":
      return "Saving…";
    case "saved":
      return (
        <>
          <Icon name="check" /> Saved at {formatClock(new Date(status.savedAt))}
        </>
      );
    case "failed":
      return (
        <>
          <Icon name="warning" /> Not saved: {status.message} {status.again && "Trying again…"}
        </>
      );
    case "conflict":
      return "Not saved: the form was changed elsewhere.";
  }
}

interface ConflictProps {
  onLoad: () => void;
  onOverwrite: () => void;
}

/** Another tab or device has saved another draft; a person must say which one stands. */
export function Conflict({ onLoad, onOverwrite }: ConflictProps) {
  return (
    <Notice tone="bad" title="This form was changed in another tab or on another device." alert>
      <p>Changes are not saved until you choose which version to keep.</p>
      <p className="buttons">
        <button type="button" className="button" onClick={onLoad}>
          Load the other version
        </button>
        <button type="button" className="button" onClick={onOverwrite}>
          Keep this version
        </button>
      </p>
    </Notice>
  );
}
