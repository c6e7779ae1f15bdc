import { ServiceError } from "../api/http";
import { t } from "../text";
import type { Draft, JSONObject, Saved } from "../api/types";

// Saves what is typed, by itself:
//
//	change ──► waiting ──► saving ──► saved
//	             ▲ (pause)    │
//	             └────────────┼─ temporary fault: again, later and later
//	                          ├─ 412: conflict, until a person decides; but first it
//	                          │  is looked whether the other draft is this page's own,
//	                          │  saved by a request whose answer was lost
//	                          └─ anything else: failed, until the next change
//
// At most one request is under way, so that drafts arrive in the order in which
// they were typed. No browser here: the clock and the service come in.

export type DraftStatus =
  | { state: "idle" }
  | { state: "waiting" }
  | { state: "saving" }
  | { state: "saved"; savedAt: number }
  | { state: "failed"; message: string; again: boolean }
  | { state: "conflict" };

export interface DraftPorts {
  /** Saves over a revision: 0 there was none, null whatever is there. */
  save: (data: JSONObject, over: number | null, keepalive: boolean) => Promise<Saved>;
  /** The draft that the service has; null when there is none. */
  stored: () => Promise<Draft | null>;
  /** Told of every change of the status. */
  tell: (status: DraftStatus) => void;
  /** Calls back later; the answer cancels. */
  later: (milliseconds: number, callback: () => void) => () => void;
}

/** How long typing must pause before it is saved. */
export const pause = 800;
const retryFirst = 2_000;
const retryLast = 30_000;
/** How many attempts of unknown outcome are remembered. Of more, the first: later ones were made without a network. */
const openMax = 64;
/** How a dropped draft is remembered among them. */
const noDraft = "";

export class DraftSaver {
  readonly #ports: DraftPorts;
  #revision: number | null;
  /** What is not saved yet; undefined when all is. */
  #unsaved: JSONObject | undefined;
  #underWay: Promise<void> | undefined;
  #cancelTimer: (() => void) | undefined;
  #retryIn = retryFirst;
  #conflict = false;
  #closed = false;
  /** What the service may have by now: the texts of attempts whose outcome is unknown. */
  readonly #open = new Set<string>();

  /** revision is that of the draft which was loaded, 0 when there was none. */
  constructor(ports: DraftPorts, revision: number) {
    this.#ports = ports;
    this.#revision = revision;
  }

  get hasUnsaved(): boolean {
    return this.#unsaved !== undefined || this.#underWay !== undefined;
  }

  /** Takes the data as it is now. It is saved when no other comes for a while. */
  change(data: JSONObject): void {
    this.#unsaved = data;
    if (this.#conflict || this.#closed) {
      return;
    }
    this.#retryIn = retryFirst;
    if (!this.#underWay) {
      this.#ports.tell({ state: "waiting" });
      this.#plan(pause);
    }
  }

  /** Saves now what is not saved. */
  flush(): void {
    if (!this.#conflict && !this.#closed) {
      this.#start();
    }
  }

  /**
   * The form goes away: the last words are sent without waiting for an answer.
   * keepalive is for when the whole page goes; browsers refuse it beyond 64 KiB.
   * The revision that a request under way will give is not known; such a page
   * is the one that the person typed in, so it wins.
   */
  leave(keepalive: boolean): void {
    const data = this.#unsaved;
    if (data === undefined || this.#conflict || this.#closed) {
      return;
    }
    this.#stopTimer();
    this.#unsaved = undefined;
    void this.#attempt(data, this.#underWay ? null : this.#revision, keepalive).then(
      // The page may come back from the browser's cache and go on.
      (saved) => this.#wasSaved(saved),
      () => (this.#unsaved ??= data),
    );
  }

  /** After a conflict: this page's data stands, whatever the other one saved. */
  overwrite(): void {
    this.#conflict = false;
    this.#revision = null;
    this.#start();
  }

  /** Ends saving, and waits for the request that is under way. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#stopTimer();
    await this.#underWay;
  }

  /** Begins again after close, with data, or else with what is not saved yet. */
  reopen(data?: JSONObject): void {
    this.#closed = false;
    const next = data ?? this.#unsaved;
    if (next !== undefined) {
      this.change(next);
    }
  }

  /**
   * Ends saving and drops the draft, with all that is not saved. An error of drop
   * is thrown; whoever does not leave the page then must reopen.
   */
  async discard(drop: () => Promise<void>): Promise<void> {
    await this.close();
    try {
      await drop();
    } catch (fault) {
      this.#remember(fault, noDraft);
      throw fault;
    }
    this.#unsaved = undefined;
    this.#open.clear();
    this.#revision = 0;
    this.#conflict = false;
    this.#ports.tell({ state: "idle" });
  }

  #plan(milliseconds: number): void {
    this.#stopTimer();
    this.#cancelTimer = this.#ports.later(milliseconds, () => this.#start());
  }

  #stopTimer(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
  }

  #start(): void {
    this.#stopTimer();
    if (this.#underWay || this.#unsaved === undefined) {
      return;
    }
    this.#underWay = this.#save(this.#unsaved).finally(() => {
      this.#underWay = undefined;
      // What was typed meanwhile has waited long enough.
      if (this.#unsaved !== undefined && !this.#cancelTimer && !this.#conflict && !this.#closed && !this.#failedForGood) {
        this.#start();
      }
    });
  }

  #failedForGood = false;

  async #save(data: JSONObject): Promise<void> {
    this.#unsaved = undefined;
    this.#failedForGood = false;
    this.#ports.tell({ state: "saving" });
    try {
      this.#wasSaved(await this.#send(data));
    } catch (fault) {
      const newer = this.#unsaved;
      this.#unsaved ??= data;
      this.#wasRefused(fault, newer !== undefined);
    }
  }

  /** Saves data over this page's last draft, also when nobody told its revision. */
  async #send(data: JSONObject): Promise<Saved> {
    try {
      return await this.#attempt(data, this.#revision, false);
    } catch (fault) {
      if (!isConflict(fault) || this.#open.size === 0) {
        throw fault;
      }
      const stored = await this.#ports.stored();
      const text = stored ? JSON.stringify(stored.data) : noDraft;
      if (!this.#open.has(text)) {
        throw fault;
      }
      this.#open.clear();
      this.#revision = stored?.revision ?? 0;
      return stored && text === JSON.stringify(data) ? stored : this.#attempt(data, this.#revision, false);
    }
  }

  async #attempt(data: JSONObject, over: number | null, keepalive: boolean): Promise<Saved> {
    try {
      return await this.#ports.save(data, over, keepalive);
    } catch (fault) {
      this.#remember(fault, JSON.stringify(data));
      throw fault;
    }
  }

  #remember(fault: unknown, text: string): void {
    if (fault instanceof ServiceError && fault.outcomeUnknown && this.#open.size < openMax) {
      this.#open.add(text);
    }
  }

  #wasSaved(saved: Saved): void {
    this.#open.clear();
    this.#revision = saved.revision;
    this.#retryIn = retryFirst;
    this.#ports.tell(this.#unsaved === undefined ? { state: "saved", savedAt: saved.savedAt } : { state: "waiting" });
  }

  #wasRefused(fault: unknown, newer: boolean): void {
    if (isConflict(fault)) {
      this.#conflict = true;
      this.#ports.tell({ state: "conflict" });
      return;
    }
    const message = fault instanceof Error ? fault.message : t("fault.unknown");
    // NB: 401 is temporary too: the person can sign in again in another tab.
    const again = fault instanceof ServiceError && (fault.temporary || fault.status === 401);
    this.#ports.tell({ state: "failed", message, again });
    if (again && !this.#closed) {
      this.#plan(this.#retryIn);
      this.#retryIn = Math.min(this.#retryIn * 2, retryLast);
    } else {
      this.#failedForGood = !newer;
    }
  }
}

/** The draft is not the one that the request was to replace. */
function isConflict(fault: unknown): boolean {
  return fault instanceof ServiceError && fault.status === 412;
}
