import { useState } from "react";
import type { HistoryEntry } from "../api/types";
import type { History } from "../api/workflow";
import { Time } from "../ui/Time";
import { count, readable } from "../words";
import { movesOf } from "./historyEntries";

/** How many entries are shown at first, and more at a time. */
const entriesStep = 8;

/** The newest entries first; older ones when they are asked for. */
export function HistoryList({ history, machines }: { history: History; machines: string[] }) {
  const [shown, setShown] = useState(entriesStep);
  const total = history.entries.length;
  const older = total - shown;
  return (
    <>
      {history.cut && <p className="quiet">The history is very long. Only the first {count(total, "entry", "entries")} are shown.</p>}
      <ol className="history" reversed>
        {history.entries
          .map((entry, index) => <Entry key={String(index)} entry={entry} machines={machines} />)
          .slice(Math.max(0, older))
          .toReversed()}
      </ol>
      {older > 0 && (
        <button type="button" className="button button-small" onClick={() => setShown(shown + 5 * entriesStep)}>
          Show older entries ({older})
        </button>
      )}
    </>
  );
}

function Entry({ entry, machines }: { entry: HistoryEntry; machines: string[] }) {
  const created = entry.transitionEvent === "";
  const moves = movesOf(entry);
  return (
    <li className="entry">
      <p className="entry-what">
        <strong>{created ? "Created" : readable(entry.transitionEvent)}</strong> by {entry.user}
      </p>
      {moves.length === 0 && <p className="entry-move">No change of status</p>}
      {moves.map((move) => (
        <p key={move.machine} className="entry-move">
          {machines.length > 1 && <span>{readable(machines[move.machine] ?? "")}: </span>}
          {!created && (
            <>
              {readable(move.from)}
              <span aria-hidden="true"> → </span>
              <span className="visually-hidden"> to </span>
            </>
          )}
          {readable(move.to)}
        </p>
      ))}
      <p className="entry-when">
        <Time at={entry.ts} exact />
      </p>
    </li>
  );
}
