/** Saveguard in a host page. The module is `/client/saveguard.js` of your Saveguard; these are its types. */

export type Operation = "edit" | "view" | "comment" | "review" | "fill";

export interface Access {
  /** The address of Saveguard; by default the one the module came from. Another origin must be in `server.allowed_origins`. */
  server?: string;
  /** A token of your application for the person in front of the page. */
  token?: string;
  /** Asks your own server for one; called before every request, so answer from a cache while it is good. */
  getToken?: () => string | Promise<string>;
}

export interface Person { id: string; name: string; since: string; last_seen_at: string }
export interface Session {
  key: string; document: string; base?: string;
  state: "waiting" | "editing" | "idle" | "saving" | "stranded" | "left-behind";
  unsaved: "yes" | "no" | "possible";
  people: Person[]; issued_at: string; last_activity_at?: string; looked_at?: string;
}
export interface Version {
  version: string; is_checkpoint: boolean; sha256: string; size_bytes: number;
  author_id: string; author_name: string; changed_at: string;
}
export interface Kept { number: number; reason: string; author_id: string; author_name: string }

/** What a page may want to hear. The last argument is the mounted editor. */
export interface Handlers {
  /** A save is on its way; the editor opens when it is there. */
  waiting?: (why: SaveguardError, mounted: Mounted) => void;
  loading?: (nothing: undefined, mounted: Mounted) => void;
  ready?: (nothing: undefined, mounted: Mounted) => void;
  /** Whether there are changes that the Document Server does not have yet. */
  change?: (isDirty: boolean, mounted: Mounted) => void;
  error?: (error: Error, mounted: Mounted) => void;
  warning?: (warning: { warningCode: number; warningDescription: string }, mounted: Mounted) => void;
  /** The close button; without a handler there is none. */
  close?: (mounted: Mounted) => void;
  /** A copy was saved. */
  copy?: (document: unknown, mounted: Mounted) => void;
  version?: (version: Version, mounted: Mounted) => void;
  sessions?: (data: { sessions: Session[] }, mounted: Mounted) => void;
  conflict?: (kept: Kept, mounted: Mounted) => void;
  quarantined?: (kept: Kept, mounted: Mounted) => void;
  renamed?: (data: { name: string }, mounted: Mounted) => void;
  deleted?: (data: {}, mounted: Mounted) => void;
}

export interface Placed {
  /** Where: an element or a selector. Whatever is in it is replaced. */
  element: Element | string;
  width?: string;
  height?: string;
  on?: Handlers;
  /** All but `edit` are on by default; `edit` offers a viewer to begin editing. */
  features?: Partial<Record<"history" | "restore" | "rename" | "saveAs" | "users" | "events" | "edit", boolean>>;
}

export interface MountOptions extends Access, Placed {
  document: string;
  operation?: Operation;
}

/** What `POST …/editor-config` and the opening of a share link answer. */
export interface Configuration { api_url: string; config: Record<string, any>; key?: string; base?: string }

export interface MountConfigurationOptions extends Placed {
  configuration: Configuration;
  /** Gives a fresh configuration when the key is spent. */
  refresh?: () => Promise<Configuration>;
  /** With both of these, history, renaming and events work too. */
  client?: Client;
  document?: string;
  operation?: Operation;
}

export interface Mounted {
  /** The `DocsAPI.DocEditor`; `null` while trouble is shown. */
  readonly editor: any;
  /** Whether there are changes that the Document Server does not have yet. */
  readonly isDirty: boolean;
  /** The version or checkpoint the editor was opened on. */
  readonly version: string | null;
  /** Opens again with a fresh configuration, once nothing is unsaved. */
  reopen(): Promise<void>;
  /** Takes the editor out of the page. */
  destroy(): void;
}

export declare class SaveguardError extends Error {
  status: number; code: string | null; next: string; instance: string | null; retryAfterSeconds: number;
}

export declare class Client {
  constructor(access?: Access);
  configuration(document: string, operation?: Operation): Promise<Configuration>;
  find(document: string): Promise<any>;
  history(document: string): Promise<any>;
  historyData(document: string, version: string | number): Promise<any>;
  restore(document: string, version: string | number, whileEditing?: boolean): Promise<any>;
  rename(document: string, name: string): Promise<any>;
  saveAs(document: string, copy: { url: string; title: string; fileType: string }): Promise<any>;
  users(document: string, kind: "mention" | "protect" | "info"): Promise<any>;
  mention(document: string, mention: { emails: string[]; message: string; actionLink?: unknown }): Promise<any>;
  sessions(document: string): Promise<Session[]>;
  /** Any other part of the interface. */
  get(path: string): Promise<any>;
  post(path: string, body: unknown): Promise<any>;
  events(document: string, heard: (name: string, data: any) => void): { close(): void };
}

export declare function mount(options: MountOptions): Promise<Mounted>;
export declare function mountConfiguration(options: MountConfigurationOptions): Promise<Mounted>;
