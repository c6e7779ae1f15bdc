import type { Instance } from "../api/runtime";

/**
 * The form that a page is about: one that exists, or one that is made when the
 * first thing is typed into it. Making it is asked for again until it is there, one
 * request at a time; make must see to it that repetitions make one form.
 */
export class FormPlace {
  #instance: Instance | null;
  #making: Promise<Instance> | undefined;
  readonly #make: () => Promise<Instance>;
  readonly #listeners = new Set<() => void>();
  /** The page began without a form. */
  readonly isNew: boolean;

  constructor(instance: Instance | null, make: () => Promise<Instance>) {
    this.#instance = instance;
    this.#make = make;
    this.isNew = instance === null;
  }

  /** The form, null as long as there is none. */
  get instance(): Instance | null {
    return this.#instance;
  }

  /** Calls listener when the form is made, until what is returned is called. */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Makes the form if there is none yet. After a fault it can be asked for again. */
  made(): Promise<Instance> {
    if (this.#instance) {
      return Promise.resolve(this.#instance);
    }
    this.#making ??= this.#make().then(
      (instance) => {
        this.#instance = instance;
        this.#listeners.forEach((listener) => listener());
        return instance;
      },
      (fault: unknown) => {
        this.#making = undefined;
        throw fault;
      },
    );
    return this.#making;
  }
}
